/** What is wrong in the form itself: nothing of it is sent. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Problem } from '../api';
import { parseDuration } from '../ui/format';
import type { EnvironmentForm } from './environment';
import type { ParameterForm } from './parameters';

/** Choices that are text fields; empty if not chosen. */
export type TextFields = Record<
  'maxRuntime' | 'name' | 'output' | 'priority',
  string
>;

/** What the user fills in. */
type Form = {
  texts: TextFields;
  parameters: ParameterForm;
  environment: EnvironmentForm;
};

/** Find the problems of what was typed. */
export function findFormProblems(
  { texts: { maxRuntime, priority }, parameters, environment }: Form,
  trans: TranslationBundle
): Problem[] {
  const problems: Problem[] = [];
  const add = (message: string, hint: string, blocking = true) =>
    problems.push({ ...formProblem(message, hint), blocking });
  if (parameters.hasErrors) {
    add(trans.__('A parameter has a value that it cannot take.'), '');
  }
  if (environment.hasErrors) {
    const message = trans.__('An environment variable has no name of its own.');
    add(message, '');
  }
  const { unsetNames } = environment;
  if (unsetNames.length > 0) {
    add(
      trans._n(
        'This variable has no value and is not set: %2.',
        'These variables have no value and are not set: %2.',
        unsetNames.length,
        unsetNames.join(', ')
      ),
      trans.__('Type it below Environment variables, or remove it there.'),
      false
    );
  }
  if (maxRuntime.trim() && parseDuration(maxRuntime.trim()) === null) {
    const hint = trans.__('Write it as 90s, 45m, 1h30m or 1d.');
    add(trans.__('The time limit is no duration.'), hint);
  }
  if (priority.trim() && !isPriority(priority.trim())) {
    const hint = trans.__('It is a whole number from -100 to 100.');
    add(trans.__('The priority is out of its range.'), hint);
  }
  return problems;
}

/** A problem of what was typed, which has to be mended first. */
export function formProblem(message: string, hint = ''): Problem {
  return { code: 'form', message, hint, blocking: true };
}

function isPriority(text: string): boolean {
  return /^[+-]?\d{1,3}$/.test(text) && Math.abs(Number(text)) <= 100;
}
