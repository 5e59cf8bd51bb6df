/**
 * The model of a submission of several jobs: what has several values, how they are combined, and the
 * jobs' group. With nothing that has several values it is the submission of one job.
 */
import type { Problem } from '../api';
import type { Choices, Job, Submission } from '../jobs/job';
import {
  type Axis,
  combineRuns,
  type Combination,
  countRuns,
  MAX_RUNS,
  type SweepFields,
  type SweptJobs
} from '../jobs/sweep';
import type { INotebookSource } from '../source';
import { formProblem } from './formProblems';
import type { SubmitModel } from './model';
import { type Place, SeveralPlaces } from './places';

/** Places of which preflight is asked; the server checks all of them before it records a job. */
const MAX_CHECKED = 8;

const GROUP_PATTERN = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** What makes several jobs of the choices of a form. */
export class SweepForm {
  constructor(
    private readonly _model: Pick<
      SubmitModel,
      'catalog' | 'parameters' | 'flavor' | 'device' | 'trans' | 'isWithdrawing'
    >
  ) {}

  combination: Combination = 'grid';
  /** The group's name; empty for one that the server makes. */
  group = '';
  /** How many jobs of the group may run at once; empty for no limit. */
  limit = '';

  /** The chosen flavors and devices, if there may be several. */
  several: SeveralPlaces | null = null;

  /** The jobs that were submitted although the user had called the sweep off; null if none. */
  remainder: SweptJobs | null = null;

  /** Let several flavors and devices be chosen, or only one again. */
  setSeveralPlaces(isSeveral: boolean): void {
    const { flavor, device } = this._model;
    this.several = isSeveral ? new SeveralPlaces(flavor, device) : null;
  }

  /** What has several values. */
  get axes(): Axis[] {
    const places = this._places;
    const { trans } = this._model;
    return [
      ...this._model.parameters.axes,
      ...(places.length > 1
        ? [{ name: placesName(places, trans), runs: places }]
        : [])
    ];
  }

  /** How many jobs there will be; null if the values cannot be combined. */
  get count(): number | null {
    return countRuns(this.axes, this.combination);
  }

  /** Whether a submission makes several jobs. */
  get isActive(): boolean {
    return this.axes.length > 0;
  }

  /** The fields of the request that make several jobs of it; null for one job. */
  get fields(): SweepFields | null {
    if (!this.isActive) {
      return null;
    }
    const group = this.group.trim();
    const limit = this.limit.trim();
    return {
      runs: combineRuns(this.axes, this.combination),
      ...(group && { group }),
      ...(limit && { group_limit: Number(limit) })
    };
  }

  /** What is wrong with it. */
  get problems(): Problem[] {
    const { trans } = this._model;
    const { count } = this;
    const problems: Problem[] = [];
    if (this.several !== null && this._model.catalog && !this._places.length) {
      problems.push(formProblem(trans.__('No flavor is chosen.')));
    }
    if (!this.isActive) {
      return problems;
    }
    if (count === null) {
      const lengths = this.axes.map(
        ({ name, runs }) => `${name} (${runs.length})`
      );
      const hint = trans.__('Or try every combination of them.');
      const text = trans.__(
        'Side by side, all need equally many values: %1.',
        lengths.join(trans.__(', '))
      );
      problems.push(formProblem(text, hint));
    } else if (count > MAX_RUNS) {
      problems.push(
        formProblem(
          trans.__(
            'These are %1 jobs: %2 at once is the most.',
            count,
            MAX_RUNS
          )
        )
      );
    }
    if (this.group.trim() && !GROUP_PATTERN.test(this.group.trim())) {
      const hint = trans.__(
        'It has letters, digits, “-”, “_” and “.”, and begins and ends with a letter or digit.'
      );
      problems.push(
        formProblem(trans.__('This cannot be the name of a group.'), hint)
      );
    }
    if (this.limit.trim() && !/^[1-9]\d{0,5}$/.test(this.limit.trim())) {
      problems.push(
        formProblem(trans.__('How many run at once is a whole number from 1.'))
      );
    }
    return problems;
  }

  /** The choices that preflight is asked about: one run in each place. */
  samples(choices: Choices): Choices[] {
    const [first] = this.axes.length > 0 ? this.axes : [];
    if (first === undefined) {
      return [{ ...choices, ...this._places[0] }];
    }
    const parameters = this.axes.reduce(
      (all, { runs }) => ({ ...all, ...runs[0]?.parameters }),
      choices.parameters ?? {}
    );
    const sample = {
      ...choices,
      ...(Object.keys(parameters).length > 0 && { parameters })
    };
    const places = this._places.slice(0, MAX_CHECKED);
    return places.length === 0
      ? [sample]
      : places.map(place => ({ ...sample, ...place }));
  }

  /** The choices with the place of all runs, if only one of several is chosen. */
  withPlace(choices: Choices): Choices {
    return this._places.length === 1
      ? { ...choices, ...this._places[0] }
      : choices;
  }

  /** Submit one job or several; returns the first one. */
  async submit(
    source: INotebookSource,
    choices: Choices,
    key: string,
    plan: Submission['plan']
  ): Promise<Job> {
    const { fields } = this;
    const common = this.withPlace(choices);
    if (fields === null || source.submitSweep === undefined) {
      return source.submit(common, key, plan);
    }
    const isOnePlace = this._places.length < 2;
    const swept = await source.submitSweep(
      common,
      fields,
      key,
      isOnePlace ? plan : undefined // a plan is about one flavor and device
    );
    this.remainder = this._model.isWithdrawing ? swept : null;
    return swept.jobs[0]!;
  }

  private get _places(): Place[] {
    const { catalog } = this._model;
    return catalog === null ? [] : (this.several?.list(catalog) ?? []);
  }
}

/** What differs between places, in a word. */
function placesName(
  places: readonly Place[],
  trans: SubmitModel['trans']
): string {
  const flavors = new Set(places.map(({ flavor }) => flavor)).size;
  const devices = new Set(places.map(({ device }) => device)).size;
  if (flavors > 1) {
    return devices > 1 ? trans.__('flavor and device') : trans.__('flavor');
  }
  return trans.__('device');
}
