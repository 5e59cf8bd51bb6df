/** Something that a view loads from the server, perhaps again and again. */
export class Resource<T> {
  /** @param onChanged is called after each change of the fields below */
  constructor(
    private readonly _load: () => Promise<T>,
    private readonly _onChanged: () => void
  ) {}

  /** What was loaded last; null before that. */
  value: T | null = null;
  /** Why the last load failed; null if it succeeded. */
  error: unknown = null;
  isLoading = false;

  /** Load it, or load it again once a load in progress has ended. */
  async load(): Promise<void> {
    if (this.isLoading) {
      this._isStale = true;
      return;
    }
    this.isLoading = true;
    this._onChanged();
    do {
      this._isStale = false;
      try {
        this.value = await this._load();
        this.error = null;
      } catch (error) {
        this.error = error;
      }
    } while (this._isStale);
    this.isLoading = false;
    this._onChanged();
  }

  private _isStale = false;
}
