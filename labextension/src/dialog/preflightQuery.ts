/**
 * Asks preflight about the choices of the dialog. A sweep is asked about once for each of its places,
 * and the answers are merged to one.
 */
import type { Estimate, Preflight, Wait } from '../api';
import type { Choices } from '../jobs/job';
import { LatestQuery } from './latestQuery';

/** Preflight's answers about all places in one; `isolated` if the run is at one of them at least. */
export type MergedPreflight = Preflight & { isIsolatedEverywhere: boolean };

/** Knows preflight's latest answer, and which choices it is about. */
export class PreflightQuery {
  /**
   * @param check asks about choices; may reject
   * @param onAnswer is told when `answer` is a new one, or else gets the error
   */
  constructor(
    check: (choices: Choices) => Promise<Preflight>,
    onAnswer: (error: unknown) => void,
    debounceMs?: number
  ) {
    this._query = new LatestQuery(
      samples => checkAll(check, samples),
      (answer, error) => {
        if (answer === null) {
          this._askedChoices = null; // so that the same question is a new one
          onAnswer(error);
        } else {
          this.answer = answer;
          this._answeredPlace = this._askedPlace;
          onAnswer(null);
        }
      },
      debounceMs
    );
  }

  /** The latest answer, whatever it is about; null without any. */
  answer: MergedPreflight | null = null;

  /** Whether the latest question is not answered yet. */
  get isPending(): boolean {
    return this._query.isPending;
  }

  /** Ask about choices, one for each place. */
  ask(samples: Choices[], isImmediate: boolean): void {
    this._askedChoices = JSON.stringify(samples);
    this._askedPlace = placeOf(samples);
    this._query.ask(samples, isImmediate);
  }

  /** Whether the latest question is about these choices. */
  isAbout(samples: readonly Choices[]): boolean {
    return this._askedChoices === JSON.stringify(samples);
  }

  /** The latest answer, if it is about the flavor, device and isolation of these choices. */
  answerFor(samples: readonly Choices[]): MergedPreflight | null {
    return this._answeredPlace === placeOf(samples) ? this.answer : null;
  }

  dispose(): void {
    this._query.dispose();
  }

  private _askedChoices: string | null = null;
  /** The places, by `placeOf`, that the latest question and the latest answer are about. */
  private _askedPlace: string | null = null;
  private _answeredPlace: string | null = null;
  private readonly _query: LatestQuery<Choices[], MergedPreflight>;
}

/**
 * Ask about each of some choices, and make one answer: the folders that a run sees with all of them,
 * but the problems and the isolation that it has with any of them.
 */
async function checkAll(
  check: (choices: Choices) => Promise<Preflight>,
  samples: readonly Choices[]
): Promise<MergedPreflight> {
  const answers = await Promise.all(samples.map(check));
  const problems = answers.flatMap(answer => answer.problems);
  const texts = new Map(
    problems.map(problem => [JSON.stringify(problem), problem])
  );
  const [first] = answers;
  return {
    ...first!,
    // Files that one place needs harm no other one.
    isolated: answers.some(({ isolated }) => isolated),
    isIsolatedEverywhere: answers.every(({ isolated }) => isolated),
    mounts: first!.mounts.filter(folder =>
      answers.every(({ mounts }) => mounts.includes(folder))
    ),
    problems: [...texts.values()],
    wait: answers.length === 1 ? first!.wait : mergeWaits(answers)
  };
}

/** The choices that decide where a run works. */
function placeOf(samples: readonly Choices[]): string {
  return JSON.stringify(
    samples.map(({ flavor, device, isolated }) => [flavor, device, isolated])
  );
}

/** What can be said of several places at once: how long a run takes, if each of them is known. */
function mergeWaits(answers: readonly Preflight[]): Wait | null {
  const [wait] = answers.flatMap(answer => answer.wait ?? []);
  const runs = answers.map(answer => answer.wait?.run ?? null);
  return wait === undefined
    ? null
    : {
        ...wait,
        needs: [],
        before: null,
        start: null,
        run: runs.includes(null) ? null : mergeEstimates(runs as Estimate[])
      };
}

/** The range of several estimates; its likely value is their mean, each run counting once. */
function mergeEstimates(estimates: readonly Estimate[]): Estimate {
  const runs = estimates.reduce((sum, each) => sum + each.runs, 0);
  const seconds = estimates.reduce(
    (sum, { likely, runs: count }) => sum + likely * count,
    0
  );
  return {
    low: Math.min(...estimates.map(({ low }) => low)),
    likely: seconds / Math.max(runs, 1),
    high: Math.max(...estimates.map(({ high }) => high)),
    runs
  };
}
