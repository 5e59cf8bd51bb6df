/**
 * The order of events and requests. Answers come late, and names of deleted jobs are used again: an
 * idempotency key makes the name. So what is outdated follows from when it was asked for.
 */
export class EventOrder {
  /** The number of events so far. A request keeps it to tell later what its answer can know. */
  get now(): number {
    return this._count;
  }

  /** Note that a job has changed: answers to requests from before that are outdated. */
  note(name: string): void {
    this._lastEvents.set(name, ++this._count);
  }

  /** Note that the job of this name was deleted. */
  noteDeletion(name: string): void {
    this.note(name);
    this._deletions.set(name, this._count);
  }

  /** Whether there was an event of a job after this moment. */
  hasChangedSince(name: string, moment: number): boolean {
    return (this._lastEvents.get(name) ?? 0) > moment;
  }

  /** Whether a job was deleted after this moment: what was asked for then is of the deleted job. */
  wasDeletedSince(name: string, moment: number): boolean {
    return (this._deletions.get(name) ?? 0) > moment;
  }

  private _count = 0;
  /** For each job the number of its last event, and that of its deletion. */
  private readonly _lastEvents = new Map<string, number>();
  private readonly _deletions = new Map<string, number>();
}
