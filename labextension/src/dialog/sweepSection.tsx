/** What the form asks where there will be several jobs: how values are combined, and the group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import { type Axis, type Combination, countRuns } from '../jobs/sweep';
import { hasSeveralPlaces } from './places';
import type { ModelProps } from './section';
import { Checkbox, TextField } from './section';
import type { SweepForm } from './sweepForm';

/** Lets several flavors and devices be chosen, where there is a choice. */
export function SeveralPlacesChoice({
  model
}: ModelProps): ReactElement | null {
  const { catalog, source, sweep, trans } = model;
  if (
    source.submitSweep === undefined ||
    catalog === null ||
    !hasSeveralPlaces(catalog)
  ) {
    return null;
  }
  return (
    <div className="jp-ToJobDialog-several">
      <Checkbox
        label={trans.__('Run on several flavors or devices, a job on each')}
        isChecked={sweep.several !== null}
        onToggle={isSeveral =>
          model.change(() => sweep.setSeveralPlaces(isSeveral))
        }
      />
    </div>
  );
}

/** Combination, group and limit; nothing while there is one job. */
export function SweepSection({ model }: ModelProps): ReactElement | null {
  const { sweep, trans } = model;
  const set = (changes: Partial<Pick<SweepForm, 'group' | 'limit'>>) =>
    model.change(() => Object.assign(sweep, changes));
  return !sweep.isActive ? null : (
    <fieldset className="jp-ToJobDialog-choice jp-ToJobDialog-sweep">
      <legend>{trans.__('Several jobs')}</legend>
      {sweep.axes.length > 1 && <CombinationChoice model={model} />}
      <div className="jp-ToJobDialog-rows">
        <TextField
          label={trans.__('Group')}
          text={sweep.group}
          onType={group => set({ group })}
          placeholder={trans.__('A name is made for it')}
          help={trans.__(
            'The jobs are shown, compared and cancelled together under it.'
          )}
        />
        <TextField
          label={trans.__('How many run at once')}
          text={sweep.limit}
          onType={limit => set({ limit })}
          placeholder={trans.__('As many as there is room for')}
          isNumeric
        />
      </div>
    </fieldset>
  );
}

function CombinationChoice({ model }: ModelProps): ReactElement {
  const { sweep, trans } = model;
  const { axes } = sweep;
  const names = axes.map(({ name }) => name).join(' × ');
  const options: [Combination, string, string][] = [
    [
      'grid',
      trans.__('Every combination (grid)'),
      trans.__('Each value with each value of the others: %1.', names)
    ],
    [
      'zip',
      trans.__('Side by side (zip)'),
      trans.__('The first values together, then the second ones, and so on.')
    ]
  ];
  return (
    <div
      className="jp-ToJobDialog-combination"
      role="radiogroup"
      aria-label={trans.__('How the values are combined')}
    >
      {options.map(([combination, label, help]) => (
        <label key={combination} className="jp-ToJobDialog-device">
          <input
            type="radio"
            name="jp-ToJobDialog-combination"
            checked={sweep.combination === combination}
            onChange={() =>
              model.change(() => (sweep.combination = combination))
            }
          />
          <span>
            <span className="jp-ToJobDialog-title">{label}</span>
            <span className="jp-ToJobDialog-free">
              {countText(axes, combination, trans)}
            </span>
            <span className="jp-ToJobDialog-help">{help}</span>
          </span>
        </label>
      ))}
    </div>
  );
}

function countText(
  axes: readonly Axis[],
  combination: Combination,
  trans: TranslationBundle
): string {
  const count = countRuns(axes, combination);
  return count === null
    ? trans.__('Not equally many values')
    : trans._n('%1 job', '%1 jobs', count);
}

/** What will be sent, where it is several jobs: `60 jobs: lr (3) × seed (10) × flavor (2)`. */
export function sweepText(
  sweep: SweepForm,
  trans: TranslationBundle
): string | null {
  const { axes, combination, count } = sweep;
  if (!sweep.isActive || count === null) {
    return null;
  }
  const parts = axes.map(({ name, runs }) => `${name} (${runs.length})`);
  const joined = parts.join(combination === 'grid' ? ' × ' : trans.__(', '));
  return trans._n('%1 job: %2', '%1 jobs: %2', count, joined);
}
