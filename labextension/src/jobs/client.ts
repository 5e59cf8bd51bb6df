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
export type Failure =
  'refused' | 'missing' | 'outdated' | 'unreachable' | 'broken';

/** What stands in front answers so where no server does: proxies, and JupyterHub (424). */
const NO_SERVER = [424, 502, 503, 504];

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
  /** Jobs, newest first. */
  page(which: Which): Promise<Page>;
  /** A job as it stands. */
  get(name: string): Promise<Job>;
  /** Send a notebook; the same key again is the same job. */
  submit(submission: Submission, idempotencyKey: string): Promise<Job>;
  /** Have a job run again as it was frozen; the same key again is the same job. */
  rerun(name: string, changes: Changes, idempotencyKey: string): Promise<Job>;
  /** Have a job ended. */
  cancel(name: string): Promise<Job>;
  /** Have a held result delivered. */
  deliver(name: string): Promise<Job>;
  /** Have a job forgotten. */
  delete(name: string): Promise<void>;
}

/** Which jobs of the list. */
export type Which = { limit: number; state?: string; cursor?: string };

/** What those need of the server who show what a job writes. */
export interface IReader {
  /** Records of the journal from an offset on; negative: from its end. */
  journal(name: string, offset: number): Promise<Journal>;
  /** Text from an offset of the journal on. */
  logs(name: string, offset: number): Promise<Logs>;
  /** The result, or what exists of it. */
  notebook(name: string): Promise<unknown>;
}

/** What the dialog needs of the server. */
export interface ICounter {
  /** What the server part is. */
  health(): Promise<Health>;
  /** What may be chosen, and what is free of it now. */
  flavors(): Promise<Catalog>;
  /** What a submission would meet. */
  preflight(submission: Submission): Promise<Preflight>;
  /** Call off a submission whose inputs are still being copied. */
  callOff(idempotencyKey: string): Promise<void>;
}

/** The REST interface of the server that this page belongs to. */
export class Client implements IClient, ICounter, IReader {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  page(which: Which): Promise<Page> {
    const query = URLExt.objectToQueryString(which);
    return this._request<Page>(`jobs${query}`);
  }

  get(name: string): Promise<Job> {
    return this._request<Job>(route(name));
  }

  submit(submission: Submission, idempotencyKey: string): Promise<Job> {
    return this._request<Job>('jobs', {
      method: 'POST',
      body: JSON.stringify(submission),
      headers: { 'Idempotency-Key': idempotencyKey }
    });
  }

  rerun(name: string, changes: Changes, idempotencyKey: string): Promise<Job> {
    return this._request<Job>(`${route(name)}/rerun`, {
      method: 'POST',
      body: JSON.stringify(changes),
      headers: { 'Idempotency-Key': idempotencyKey }
    });
  }

  cancel(name: string): Promise<Job> {
    return this._request<Job>(`${route(name)}/cancel`, { method: 'POST' });
  }

  deliver(name: string): Promise<Job> {
    return this._request<Job>(`${route(name)}/deliver`, { method: 'POST' });
  }

  async delete(name: string): Promise<void> {
    await this._request(route(name), { method: 'DELETE' });
  }

  journal(name: string, offset: number): Promise<Journal> {
    return this._request<Journal>(`${route(name)}/journal?offset=${offset}`);
  }

  logs(name: string, offset: number): Promise<Logs> {
    return this._request<Logs>(`${route(name)}/logs?offset=${offset}`);
  }

  notebook(name: string): Promise<unknown> {
    return this._request<unknown>(`${route(name)}/notebook`);
  }

  health(): Promise<Health> {
    return this._request<Health>('health');
  }

  flavors(): Promise<Catalog> {
    return this._request<Catalog>('flavors');
  }

  preflight(submission: Submission): Promise<Preflight> {
    return this._request<Preflight>('preflight', {
      method: 'POST',
      body: JSON.stringify(submission)
    });
  }

  async callOff(idempotencyKey: string): Promise<void> {
    const route = `submissions/${encodeURIComponent(idempotencyKey)}`;
    await this._request(route, { method: 'DELETE' });
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

function route(name: string): string {
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
  const failure = NO_SERVER.includes(status) ? 'unreachable' : 'broken';
  return new ApiError(status === 404 ? 'missing' : failure, `HTTP ${status}`);
}
