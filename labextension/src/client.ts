/**
 * The server extension's REST interface, and the one place where its answers become errors.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { Job, Submission } from './job';

/**
 * Why a request failed: `refused` by the server in its own words, `missing` where the server has no
 * such routes, `unreachable` where no answer came, `broken` for an answer that is none of ours.
 */
export type Failure = 'refused' | 'missing' | 'unreachable' | 'broken';

/** A request that did not do what was asked. */
export class ApiError extends Error {
  constructor(
    /** What kind of failure it was. */
    readonly failure: Failure,
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
export interface IClient {
  /** The newest jobs. */
  list(): Promise<Job[]>;
  /** Send a notebook; the same key again is the same job. */
  submit(submission: Submission, idempotencyKey: string): Promise<Job>;
}

/** The REST interface of the server that this page belongs to. */
export class Client implements IClient {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  async list(): Promise<Job[]> {
    const { jobs } = await this._request<{ jobs: Job[] }>('jobs?limit=100');
    return jobs;
  }

  submit(submission: Submission, idempotencyKey: string): Promise<Job> {
    return this._request<Job>('jobs', {
      method: 'POST',
      body: JSON.stringify(submission),
      headers: { 'Idempotency-Key': idempotencyKey }
    });
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

/** The error that an answer stands for: ours says it in words, anybody else's only by its status. */
function toError(status: number, body: unknown): ApiError {
  const { error } = (body ?? {}) as {
    error?: { code?: string; message?: string; hint?: string | null };
  };
  if (typeof error?.message === 'string') {
    return new ApiError(
      'refused',
      error.message,
      error.hint ?? null,
      error.code ?? null
    );
  }
  return new ApiError(status === 404 ? 'missing' : 'broken', `HTTP ${status}`);
}
