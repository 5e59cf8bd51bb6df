/** What is wrong in the form itself: nothing of it is sent. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Problem } from '../api';
import { parseDuration } from '../ui/format';
import type { ParameterForm } from './parameters';

/** Choices that are text fields; empty if not chosen. */
export type TextFields = Record<
  'maxRuntime' | 'name' | 'output' | 'priority',
  string
>;

/** Find the problems of what was typed. */
export function findFormProblems(
  { maxRuntime, priority }: TextFields,
  parameters: ParameterForm,
  trans: TranslationBundle
): Problem[] {
  const problems: Problem[] = [];
  const add = (message: string, hint: string) =>
    problems.push({ code: 'form', message, hint, blocking: true });
  if (parameters.hasErrors) {
    add(trans.__('A parameter has a value that it cannot take.'), '');
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

function isPriority(text: string): boolean {
  return /^[+-]?\d{1,3}$/.test(text) && Math.abs(Number(text)) <= 100;
}
