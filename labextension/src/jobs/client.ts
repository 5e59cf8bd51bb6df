/** The client of the server extension's REST API. Answers become errors here and nowhere else. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type {
  Catalog,
  Health,
  Job,
  Journal,
  Logs,
  Page,
  Preflight
} from '../api';
import type { Changes, Submission } from './job';

/**
 * Why a request failed. `refused`: the server said no, in words. `missing`: the server has no such
 * routes. `outdated`: it has our routes, but not this one. `unreachable`: there was no answer.
 * `broken`: the answer is not ours.
 */
export type FailureKind =
  'refused' | 'missing' | 'outdated' | 'unreachable' | 'broken';

/** What proxies and JupyterHub (424) answer when the server behind them does not run. */
const GATEWAY_ERRORS = [424, 502, 503, 504];

/** A failed request. */
export class ApiError extends Error {
  constructor(
    /** The kind of failure. */
    readonly failure: FailureKind,
    message: string,
    /** What the user can do about it, as the server words it. */
    readonly hint: string | null = null,
    /** The server's stable code of the error. */
    readonly code: string | null = null
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** API calls of the job model. */
export interface IJobsApi {
  /** List jobs, newest first. */
  listJobs(which: JobsQuery): Promise<Page>;
  /** Get the current state of a job. */
  getJob(name: string): Promise<Job>;
  /** Submit a notebook. The same key again returns the same job. */
  submitJob(submission: Submission, idempotencyKey: string): Promise<Job>;
  /** Run a job again as it was frozen. The same key again returns the same job. */
  rerunJob(
    name: string,
    changes: Changes,
    idempotencyKey: string
  ): Promise<Job>;
  /** Cancel a job. */
  cancelJob(name: string): Promise<Job>;
  /** Deliver a held result. */
  deliverResult(name: string): Promise<Job>;
  /** Delete a job. */
  deleteJob(name: string): Promise<void>;
}

/** Selects jobs of the list. */
export type JobsQuery = { limit: number; state?: string; cursor?: string };

/** API calls of the live view and the logs. */
export interface IJournalApi {
  /** Read journal records from a byte offset; a negative one counts from the end. */
  readJournal(name: string, offset: number): Promise<Journal>;
  /** Read printed text from a byte offset of the journal. */
  readLogs(name: string, offset: number): Promise<Logs>;
  /** Get the result, or what exists of it so far. */
  getNotebook(name: string): Promise<unknown>;
}

/** API calls of the submit dialog. */
export interface IDialogApi {
  /** Get version and abilities of the server extension. */
  getHealth(): Promise<Health>;
  /** Get the catalog, with the units that are free now. */
  getCatalog(): Promise<Catalog>;
  /** Run preflight: what would happen to this submission. */
  checkSubmission(submission: Submission): Promise<Preflight>;
  /** Withdraw a submission whose inputs are still being copied. */
  withdraw(idempotencyKey: string): Promise<void>;
}

/** The REST client of this page's server. */
export class Client implements IJobsApi, IDialogApi, IJournalApi {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  listJobs(query: JobsQuery): Promise<Page> {
    return this._request<Page>(`jobs${URLExt.objectToQueryString(query)}`);
  }

  getJob(name: string): Promise<Job> {
    return this._request<Job>(jobRoute(name));
  }

  submitJob(submission: Submission, idempotencyKey: string): Promise<Job> {
    return this._request<Job>('jobs', {
      method: 'POST',
      body: JSON.stringify(submission),
      headers: { 'Idempotency-Key': idempotencyKey }
    });
  }

  rerunJob(
    name: string,
    changes: Changes,
    idempotencyKey: string
  ): Promise<Job> {
    return this._request<Job>(`${jobRoute(name)}/rerun`, {
      method: 'POST',
      body: JSON.stringify(changes),
      headers: { 'Idempotency-Key': idempotencyKey }
    });
  }

  cancelJob(name: string): Promise<Job> {
    return this._request<Job>(`${jobRoute(name)}/cancel`, { method: 'POST' });
  }

  deliverResult(name: string): Promise<Job> {
    return this._request<Job>(`${jobRoute(name)}/deliver`, { method: 'POST' });
  }

  async deleteJob(name: string): Promise<void> {
    await this._request(jobRoute(name), { method: 'DELETE' });
  }

  readJournal(name: string, offset: number): Promise<Journal> {
    return this._request<Journal>(`${jobRoute(name)}/journal?offset=${offset}`);
  }

  readLogs(name: string, offset: number): Promise<Logs> {
    return this._request<Logs>(`${jobRoute(name)}/logs?offset=${offset}`);
  }

  getNotebook(name: string): Promise<unknown> {
    return this._request<unknown>(`${jobRoute(name)}/notebook`);
  }

  getHealth(): Promise<Health> {
    return this._request<Health>('health');
  }

  getCatalog(): Promise<Catalog> {
    return this._request<Catalog>('flavors');
  }

  checkSubmission(submission: Submission): Promise<Preflight> {
    return this._request<Preflight>('preflight', {
      method: 'POST',
      body: JSON.stringify(submission)
    });
  }

  async withdraw(idempotencyKey: string): Promise<void> {
    const key = encodeURIComponent(idempotencyKey);
    await this._request(`submissions/${key}`, { method: 'DELETE' });
  }

  private async _request<T>(route: string, init: RequestInit = {}): Promise<T> {
    const url = URLExt.join(
      this._settings.baseUrl,
      'jupyter-to-job/api',
      route
    );
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this._settings);
    } catch (error) {
      if (error instanceof ServerConnection.NetworkError) {
        throw new ApiError('unreachable', error.message);
      }
      throw error;
    }
    if (response.status === 204) {
      return undefined as T;
    }
    const body: unknown = await response.json().catch(() => null);
    if (!response.ok) {
      throw toError(response.status, body);
    }
    if (body === null) {
      throw new ApiError('broken', `HTTP ${response.status}`);
    }
    return body as T;
  }
}

function jobRoute(name: string): string {
  return `jobs/${encodeURIComponent(name)}`;
}

/** Convert an error answer. Ours has a message; of any other only the status is used. */
function toError(status: number, body: unknown): ApiError {
  const { error } = (body ?? {}) as {
    error?: { code?: string; message?: string; hint?: string | null };
  };
  if (error?.code === 'no_route') {
    return new ApiError('outdated', error.message ?? '');
  }
  if (typeof error?.message === 'string') {
    return new ApiError(
      'refused',
      error.message,
      error.hint ?? null,
      error.code ?? null
    );
  }
  const failure = GATEWAY_ERRORS.includes(status) ? 'unreachable' : 'broken';
  return new ApiError(status === 404 ? 'missing' : failure, `HTTP ${status}`);
}
