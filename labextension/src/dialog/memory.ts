/**
 * Remembers the choices for each notebook, so that it can be submitted again with two keystrokes.
 * The newest job of the notebook knows them, in whichever page or terminal it was submitted. Only
 * the suggested files that were declined, the names of environment variables, and the defaults that
 * the changed parameters had then are in no job: the browser keeps them. What a sweep has varied is
 * left out: the values and the place of its last run are nobody's choice, and would override those
 * that the notebook and the settings were given since.
 */
import { type Choices, choicesOfJob, type Job } from '../jobs/job';
import { jobsOf, variedParameters } from '../jobs/sweep';
import type { IJobs } from '../tokens';
import { BrowserStore } from '../ui/browserStore';

/**
 * Choices for one notebook, the suggested files that were declined, the names of environment
 * variables, whose values are not remembered, and defaults that parameters had.
 */
export type RememberedChoices = { choices?: Choices } & Kept;

/** What the browser keeps of a notebook. */
type Kept = {
  declined?: string[];
  variables?: string[];
  /** The source text that the defaults of the changed parameters had when they were sent. */
  defaults?: Record<string, string>;
};

/** What is kept with the job, or its group, that was sent then: `defaults` are about that one. */
type Entry = Kept & { sent?: string };

/** What is remembered of the loaded jobs, and then of all jobs if those may not know it. */
export type Memories = {
  now: RememberedChoices;
  later: Promise<RememberedChoices> | null;
};

/** How many notebooks are remembered. The one submitted longest ago is dropped first. */
const MAX_NOTEBOOKS = 50;

/** What the memory needs of the jobs. */
export type KnownJobs = Pick<
  IJobs,
  'all' | 'getNewestOf' | 'findNewestOf' | 'loadGroup'
>;

export class ChoiceMemory {
  /** @param scope as `serverScope` has it */
  constructor(
    private readonly _jobs: KnownJobs,
    scope: string
  ) {
    this._store = new BrowserStore('choices', scope);
  }

  /** Load what is remembered of a notebook, without waiting for the server. */
  load(path: string): Memories {
    const toMemory = (job: Job | null | undefined): RememberedChoices => {
      const { sent, defaults, ...others } = this._loadKept(path);
      return {
        ...(job && { choices: this._choicesOf(job) }),
        ...others,
        ...(defaults && job && sent === sentName(job) && { defaults })
      };
    };
    const newest = this._jobs.getNewestOf(path);
    // Of a group only some jobs may be loaded, which do not tell all that was varied.
    const isKnown = newest !== undefined && newest.group === null;
    return {
      now: toMemory(newest),
      later: isKnown ? null : this._findNewestOf(path).then(toMemory)
    };
  }

  /** Find the newest job of a notebook, and load the group that it belongs to. */
  private async _findNewestOf(path: string): Promise<Job | null> {
    const newest = await this._jobs.findNewestOf(path);
    if (newest !== null && newest.group !== null) {
      await this._jobs.loadGroup(newest.group).catch(() => undefined);
    }
    return newest;
  }

  /** The choices of a job, without what its group has varied; the changes of a rerun are choices. */
  private _choicesOf(job: Job): Choices {
    const { parameters, flavor, device, ...choices } = choicesOfJob(job);
    const group = job.group === null ? [] : jobsOf(this._jobs.all, job.group);
    const members = group.filter(each => each.notebook === job.notebook);
    const names = new Set(members.map(({ name }) => name));
    // A rerun whose original was deleted is all that is known of that run.
    const runs = members.filter(({ rerun_of }) => !names.has(rerun_of ?? ''));
    const hasOneFlavor = runs.every(each => each.flavor === runs[0]!.flavor);
    const hasOneDevice = runs.every(each => each.device === runs[0]!.device);
    const varied = variedParameters(runs);
    const kept = Object.entries(parameters ?? {}).filter(
      ([name]) => !varied.has(name)
    );
    return {
      ...choices,
      // Another flavor may not have the device.
      ...(hasOneFlavor && { flavor, ...(hasOneDevice && { device }) }),
      ...(kept.length > 0 && { parameters: Object.fromEntries(kept) })
    };
  }

  /** Save what no job knows. Never fails: a lost memory must not disturb a submission. */
  save(
    path: string,
    job: Job,
    { declined = [], variables = [], defaults = {} }: Kept
  ): void {
    const others = this._loadEntries().filter(
      ([notebook]) => notebook !== path
    );
    const kept: Entry = {
      ...(declined.length > 0 && { declined }),
      ...(variables.length > 0 && { variables }),
      ...(Object.keys(defaults).length > 0 && {
        defaults,
        sent: sentName(job)
      })
    };
    const added: MemoryEntry[] =
      Object.keys(kept).length > 0 ? [[path, kept]] : [];
    const entries = [...added, ...others].slice(0, MAX_NOTEBOOKS);
    this._unsaved = this._store.save(entries) ? null : entries;
  }

  private _loadKept(path: string): Entry {
    const entries = this._loadEntries();
    const kept = entries.find(([notebook]) => notebook === path)?.[1];
    return {
      declined: kept?.declined ?? [],
      ...(kept?.variables && { variables: kept.variables }),
      ...(kept?.defaults && { defaults: kept.defaults, sent: kept.sent })
    };
  }

  /** Load all entries anew: other pages write them, too. */
  private _loadEntries(): MemoryEntry[] {
    const value = this._unsaved ?? this._store.load();
    return Array.isArray(value) ? value.filter(isEntry) : [];
  }

  private readonly _store: BrowserStore;
  /** What the storage did not take, which this page remembers by itself. */
  private _unsaved: MemoryEntry[] | null = null;
}

type MemoryEntry = [path: string, remembered: Entry];

/** What was sent: a group, or a job alone. */
function sentName({ name, group }: Job): string {
  return group ?? name;
}

/** Whether a stored entry has our format: another version may have written it. */
function isEntry(entry: unknown): entry is MemoryEntry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
