/** The client of the server extension's REST API. Answers become errors here and nowhere else. */
import { URLExt } from '@jupyterlab/coreutils';
import type * as nbformat from '@jupyterlab/nbformat';
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import type {
  Catalog,
  CellReceipt,
  CellReceipts,
  Difference,
  Health,
  Job,
  JobRecord,
  Journal,
  Logs,
  OldResult,
  OldResults,
  Page,
  Preflight,
  Removal,
  Results,
  SweptJobs
} from '../api';
import type { Changes, Submission } from './job';
import type { SweepSubmission } from './sweep';

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
    readonly failure: FailureKind,
    message: string,
    /** What the user can do about it, as the server words it. */
    readonly hint: string | null = null,
    /** The server's stable code of the error. */
    readonly code: string | null = null,
    /** By which an administrator finds the log lines about it, where those say more. */
    readonly requestId: string | null = null
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Whether the server answered with one of these codes. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof ApiError && codes.includes(error.code ?? '');
}

/** Whether the server answered that it has no such job. */
export function isNotFound(error: unknown): boolean {
  return hasCode(error, 'not_found');
}

/** Whether a request may have been carried out: no answer came, or none from what runs the jobs. */
export function isUncertain(error: unknown): boolean {
  return (
    error instanceof ApiError &&
    (error.failure === 'unreachable' || error.code === 'unavailable')
  );
}

export type JobsQuery = {
  limit: number;
  state?: string;
  cursor?: string;
  name?: string;
  notebook?: string;
  group?: string;
};

/** API calls of the job model. */
export type IJobsApi = Pick<
  Client,
  | 'list'
  | 'get'
  | 'submit'
  | 'submitSweep'
  | 'rerun'
  | 'cancel'
  | 'deliver'
  | 'delete'
>;

/** API calls of the view of results. */
export type IResultsApi = Pick<
  Client,
  'getResults' | 'getResultsFile' | 'getPicture' | 'getNotebook'
>;

/** API calls of the live view and the logs. */
export type IJournalApi = Pick<
  Client,
  'readJournal' | 'readLogs' | 'getNotebook'
>;

/** API calls that make documents of results. */
export type IExportApi = Pick<Client, 'getExport'>;

/** API calls of the details of a job. */
export type IDetailsApi = Pick<
  Client,
  | 'get'
  | 'getRecord'
  | 'getCells'
  | 'getSnapshot'
  | 'getDifference'
  | 'getExport'
  | 'readLogs'
>;

/** API calls of the submit dialog. */
export type IDialogApi = Pick<
  Client,
  'getHealth' | 'getCatalog' | 'checkSubmission' | 'withdraw'
>;

/** The REST client of this page's server. All calls throw ApiError. */
export class Client {
  /**
   * @param resultsFolder the folder of results that the user has set, as the server's own setting
   *   has it; empty for that one
   */
  constructor(
    private readonly _settings: ServerConnection.ISettings,
    private readonly _resultsFolder = () => ''
  ) {}

  /** List jobs, newest first. */
  list(query: JobsQuery): Promise<Page> {
    return this._request('GET', `jobs${URLExt.objectToQueryString(query)}`);
  }

  get(name: string): Promise<Job> {
    return this._request('GET', jobRoute(name));
  }

  /** Submit a notebook. The same key again returns the same job. */
  submit(submission: Submission, idempotencyKey: string): Promise<Job> {
    const body = this._withResults(submission);
    return this._request('POST', 'jobs', body, idempotencyKey);
  }

  /** Submit several jobs of a notebook. The same key again returns the same jobs. */
  submitSweep(
    submission: SweepSubmission,
    idempotencyKey: string
  ): Promise<SweptJobs> {
    const body = this._withResults(submission);
    return this._request('POST', 'sweeps', body, idempotencyKey);
  }

  /** Get the results of a group's jobs. */
  getResults(group: string): Promise<Results> {
    return this._request(
      'GET',
      `results${URLExt.objectToQueryString({ group })}`
    );
  }

  /** Get the results of a group's jobs as a file. */
  getResultsFile(group: string, format: 'csv' | 'parquet'): Promise<Blob> {
    const query = URLExt.objectToQueryString({ group, format });
    return this._fetchFile(`results${query}`);
  }

  /** Get the picture that a job recorded as a metric. */
  getPicture(name: string, metric: string): Promise<Blob> {
    const query = URLExt.objectToQueryString({ metric });
    return this._fetchFile(`${jobRoute(name)}/picture${query}`);
  }

  /** Run a job again as it was frozen. The same key again returns the same job. */
  rerun(name: string, changes: Changes, idempotencyKey: string): Promise<Job> {
    const route = `${jobRoute(name)}/rerun`;
    const body = this._withResults(changes);
    return this._request('POST', route, body, idempotencyKey);
  }

  cancel(name: string): Promise<Job> {
    return this._request('POST', `${jobRoute(name)}/cancel`);
  }

  /** Deliver a held result. */
  deliver(name: string): Promise<Job> {
    return this._request('POST', `${jobRoute(name)}/deliver`);
  }

  delete(name: string): Promise<void> {
    return this._request('DELETE', jobRoute(name));
  }

  /**
   * List delivered notebooks that may be removed.
   *
   * @param olderThan how long ago their jobs ended, such as `30d`
   * @param keep how many of the newest results of each notebook are left out
   */
  async listOldResults(olderThan: string, keep: number): Promise<OldResult[]> {
    const query = URLExt.objectToQueryString({ older_than: olderThan, keep });
    return (await this._request<OldResults>('GET', `old-results${query}`))
      .results;
  }

  /** Remove the delivered notebook of a job. */
  removeResult(name: string): Promise<Removal> {
    return this._request('DELETE', `${jobRoute(name)}/result`);
  }

  /** Read journal records from a byte offset; a negative one counts from the end. */
  readJournal(name: string, offset: number): Promise<Journal> {
    return this._request('GET', `${jobRoute(name)}/journal?offset=${offset}`);
  }

  /** Read printed text from a byte offset of the journal. */
  readLogs(name: string, offset: number): Promise<Logs> {
    return this._request('GET', `${jobRoute(name)}/logs?offset=${offset}`);
  }

  /** Get the result, or what exists of it so far, with its outputs or without. */
  getNotebook(name: string, hasOutputs = true): Promise<unknown> {
    const query = hasOutputs ? '' : '?outputs=false';
    return this._request('GET', `${jobRoute(name)}/notebook${query}`);
  }

  /** Get where a job ran, its files, and how long they are kept. */
  getRecord(name: string): Promise<JobRecord> {
    return this._request('GET', `${jobRoute(name)}/record`);
  }

  /** Get what the cells of a job used. */
  async getCells(name: string): Promise<CellReceipt[]> {
    const route = `${jobRoute(name)}/cells`;
    return (await this._request<CellReceipts>('GET', route)).cells;
  }

  /** Get the notebook as it was frozen. */
  getSnapshot(name: string): Promise<nbformat.INotebookContent> {
    return this._request('GET', `${jobRoute(name)}/snapshot`);
  }

  /** Get what changed in the notebook on disk since it was frozen. */
  getDifference(name: string): Promise<Difference> {
    return this._request('GET', `${jobRoute(name)}/difference`);
  }

  /** Get the result as a document, with or without its code. */
  getExport(
    name: string,
    format: 'html' | 'pdf',
    code: boolean
  ): Promise<Blob> {
    const query = URLExt.objectToQueryString({ format, code });
    return this._fetchFile(`${jobRoute(name)}/export${query}`);
  }

  /** Get version and abilities of the server extension. */
  getHealth(): Promise<Health> {
    return this._request('GET', 'health');
  }

  /** Get the catalog, with the units that are free now. */
  getCatalog(): Promise<Catalog> {
    return this._request('GET', 'flavors');
  }

  /** Run preflight: what would happen to this submission. */
  checkSubmission(submission: Submission): Promise<Preflight> {
    return this._request('POST', 'preflight', this._withResults(submission));
  }

  /** Withdraw a submission whose inputs are still being copied. */
  withdraw(idempotencyKey: string): Promise<void> {
    const route = `submissions/${encodeURIComponent(idempotencyKey)}`;
    return this._request('DELETE', route);
  }

  /** The folder counts where no output is asked for. It is no choice of the user for this job. */
  private _withResults<T extends Submission | Changes>(
    body: T
  ): T & Pick<Changes, 'results'> {
    const results = this._resultsFolder().trim();
    return results === '' ? body : { ...body, results };
  }

  private async _request<T>(
    method: string,
    route: string,
    content?: Submission | Changes,
    idempotencyKey?: string
  ): Promise<T> {
    const init: RequestInit = {
      method,
      body: JSON.stringify(content),
      headers: idempotencyKey ? { 'Idempotency-Key': idempotencyKey } : {}
    };
    const response = await this._fetch(route, init);
    if (response.status === 204) {
      return undefined as T;
    }
    const body = parse(await toEnd(response.text()));
    if (!response.ok) {
      throw toError(response.status, body);
    }
    if (body === null) {
      throw new ApiError('broken', `HTTP ${response.status}`);
    }
    return body as T;
  }

  private async _fetchFile(route: string): Promise<Blob> {
    const response = await this._fetch(route, {});
    if (!response.ok) {
      throw toError(response.status, parse(await toEnd(response.text())));
    }
    return toEnd(response.blob());
  }

  private _fetch(route: string, init: RequestInit): Promise<Response> {
    const url = URLExt.join(
      this._settings.baseUrl,
      'jupyter-to-job/api',
      route
    );
    const headers = { ...init.headers, 'X-Request-ID': newRequestId() };
    return ServerConnection.makeRequest(
      url,
      { ...init, headers },
      this._settings
    ).catch((error: unknown) => {
      throw error instanceof ServerConnection.NetworkError
        ? new ApiError('unreachable', error.message)
        : error;
    });
  }
}

function jobRoute(name: string): string {
  return `jobs/${encodeURIComponent(name)}`;
}

/** Wait for the whole body of an answer: one that is cut before its end is no answer. */
function toEnd<T>(body: Promise<T>): Promise<T> {
  return body.catch((error: unknown) => {
    throw new ApiError('unreachable', String(error));
  });
}

/** What a body says in JSON; null if it is something else. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The id by which the log lines about a request are found, on all machines that it reaches. */
function newRequestId(): string {
  return UUID.uuid4().replace(/-/g, '').slice(0, 16);
}

/** Convert an error answer. Ours has a message; of any other only the status is used. */
function toError(status: number, body: unknown): ApiError {
  const { error } = (body ?? {}) as {
    error?: {
      code?: string;
      message?: string;
      hint?: string | null;
      request_id?: string;
    };
  };
  // A hint comes from behind a gateway, whose version it names: the server's own answer has none.
  if (error?.code === 'no_route' && !error.hint) {
    return new ApiError('outdated', error.message ?? '');
  }
  if (typeof error?.message === 'string') {
    return new ApiError(
      'refused',
      error.message,
      error.hint ?? null,
      error.code ?? null,
      error.request_id ?? null
    );
  }
  const failure = GATEWAY_ERRORS.includes(status) ? 'unreachable' : 'broken';
  return new ApiError(status === 404 ? 'missing' : failure, `HTTP ${status}`);
}
