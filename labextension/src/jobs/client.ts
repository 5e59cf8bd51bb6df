/**
 * The server extension's REST interface, and the one place where its answers become errors.
 */
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
 * Why a request failed: `refused` by the server in its own words, `missing` where the server has no
 * such routes, `outdated` where it has others of ours, `unreachable` where no answer came, `broken`
 * for an answer that is none of ours.
 */
export type FailureKind =
  'refused' | 'missing' | 'outdated' | 'unreachable' | 'broken';

/** What stands in front answers so where no server does: proxies, and JupyterHub (424). */
const GATEWAY_ERRORS = [424, 502, 503, 504];

/** A request that did not do what was asked. */
export class ApiError extends Error {
  constructor(
    /** What kind of failure it was. */
    readonly failure: FailureKind,
    message: string,
    /** What the user can do about it, in the server's words. */
    readonly hint: string | null = null,
    /** The server's stable name for the error. */
    readonly code: string | null = null
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** What the model needs of the server. */
export interface IJobsApi {
  /** Jobs, newest first. */
  listJobs(which: JobsQuery): Promise<Page>;
  /** A job as it stands. */
  getJob(name: string): Promise<Job>;
  /** Send a notebook; the same key again is the same job. */
  submitJob(submission: Submission, idempotencyKey: string): Promise<Job>;
  /** Have a job run again as it was frozen; the same key again is the same job. */
  rerunJob(
    name: string,
    changes: Changes,
    idempotencyKey: string
  ): Promise<Job>;
  /** Have a job ended. */
  cancelJob(name: string): Promise<Job>;
  /** Have a held result delivered. */
  deliverResult(name: string): Promise<Job>;
  /** Have a job forgotten. */
  deleteJob(name: string): Promise<void>;
}

/** Which jobs of the list. */
export type JobsQuery = { limit: number; state?: string; cursor?: string };

/** What those need of the server who show what a job writes. */
export interface IJournalApi {
  /** Records of the journal from an offset on; negative: from its end. */
  readJournal(name: string, offset: number): Promise<Journal>;
  /** Text from an offset of the journal on. */
  readLogs(name: string, offset: number): Promise<Logs>;
  /** The result, or what exists of it. */
  getNotebook(name: string): Promise<unknown>;
}

/** What the dialog needs of the server. */
export interface IDialogApi {
  /** What the server part is. */
  getHealth(): Promise<Health>;
  /** What may be chosen, and what is free of it now. */
  getCatalog(): Promise<Catalog>;
  /** What a submission would meet. */
  checkSubmission(submission: Submission): Promise<Preflight>;
  /** Call off a submission whose inputs are still being copied. */
  withdraw(idempotencyKey: string): Promise<void>;
}

/** The REST interface of the server that this page belongs to. */
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

/** The error that an answer stands for: ours says it in words, anybody else's only by its status. */
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
