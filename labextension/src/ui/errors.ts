/** Errors and connection problems in words for the user. */
import { Dialog, showErrorMessage } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { ApiError, isUncertain } from '../jobs/client';
import type { FeedState } from '../tokens';
import type { FailureTexts } from './failureTexts';
import { explainCode } from './serverText';
import { showToast } from './toast';

/** The notebook cannot be submitted as it is; the message is for the user. */
export class CannotSubmit extends Error {}

/** The notebook could not be saved because the server is unreachable. */
export class NoConnection extends CannotSubmit {}

/** Saving failed or was cancelled, which JupyterLab itself has shown to the user. */
export class SaveFailed extends Error {}

/** Show an error to the user, unless JupyterLab has; `isSubmission` as for `errorText`. */
export function showError(
  error: unknown,
  trans: TranslationBundle,
  isSubmission = true
): void {
  if (!(error instanceof SaveFailed)) {
    showErrorText(errorText(error, trans, isSubmission), error, trans);
  }
}

/** Show a text about an error, in a way that works where that is a lost connection. */
export function showErrorText(
  text: string,
  error: unknown,
  trans: TranslationBundle
): void {
  if (!(error instanceof ApiError || error instanceof CannotSubmit)) {
    console.error(error);
  }
  if (isUnreachable(error)) {
    // JupyterLab loads the code of its notifications on first use, which fails without a
    // connection.
    const close = Dialog.okButton({ label: trans.__('Close') });
    void showErrorMessage(trans.__('Jupyter to Job'), text, [close]);
  } else {
    showToast({ type: 'error', text }, trans);
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError
    ? error.failure === 'unreachable'
    : error instanceof NoConnection;
}

/** Say how many jobs failed, and of how many that is not known, each with its first error. */
export function describeErrors(
  { failure, uncertainty }: FailureTexts,
  errors: readonly unknown[],
  total: number,
  trans: TranslationBundle
): string {
  const refusals = errors.filter(error => !isUncertain(error));
  const kinds = [
    { toText: failure, members: refusals },
    { toText: uncertainty, members: errors.filter(isUncertain) }
  ];
  return kinds
    .filter(({ members }) => members.length > 0)
    .flatMap(({ toText, members }) => [
      trans.__('%1:', toText(members.length, total)),
      errorText(members[0], trans, false)
    ])
    .join(' ');
}

/** What went wrong and what to do; `isSubmission` if a submission failed, not another request. */
export function errorText(
  error: unknown,
  trans: TranslationBundle,
  isSubmission = true
): string {
  if (!(error instanceof ApiError)) {
    return rejectionText(
      error instanceof Error ? error.message : String(error)
    );
  }
  switch (error.failure) {
    case 'refused':
      if (error.code === 'partly_submitted') {
        return refusalText(error, trans); // it says itself what was submitted
      }
      return isSubmission && isUncertain(error)
        ? trans.__(
            '%1 Sending again is safe: it stays one job.',
            refusalText(error, trans)
          )
        : rejectionText(refusalText(error, trans));
    case 'missing':
      return trans.__(
        'The server part of Jupyter to Job is not installed or not enabled on this server: ask who runs it, or install jupyter-to-job there and restart it.'
      );
    case 'outdated':
      return trans.__(
        'The server part of Jupyter to Job is older than this page: restart Jupyter Server, then reload the page.'
      );
    case 'unreachable':
      return isSubmission
        ? trans.__(
            'The connection to the server was lost: it is not known whether the notebook was submitted. Sending again is safe: it stays one job.'
          )
        : trans.__('There is no connection to the server.');
    case 'broken':
      return trans.__(
        'The server answered with an error (%1). Its log says more.',
        error.message
      );
  }

  function rejectionText(why: string): string {
    return isSubmission ? trans.__('Not submitted: %1', why) : why;
  }
}

/** What the server said, with what to do and what to quote to an administrator. */
function refusalText(
  { code, hint, message, requestId }: ApiError,
  trans: TranslationBundle
): string {
  return [
    explainCode(code, message, trans),
    hint,
    // By it administrators find the log lines that say more.
    requestId && trans.__('(Request %1)', requestId)
  ]
    .filter(Boolean)
    .join(' ');
}

/** Why the list may be outdated; null if nothing is wrong. */
export function connectionProblem(
  error: unknown,
  feed: FeedState,
  trans: TranslationBundle
): string | null {
  if (error instanceof ApiError && error.failure === 'unreachable') {
    return trans.__(
      'There is no connection to the server. Jobs go on without it; what is shown may be old.'
    );
  }
  if (error !== null) {
    return errorText(error, trans, false);
  }
  if (feed === 'forbidden') {
    return trans.__(
      'You are not allowed to listen to the events of this server, so this list does not change by itself.'
    );
  }
  return feed === 'lost'
    ? trans.__(
        'The server sends no news at present, so what is shown may be old. The connection is tried again by itself.'
      )
    : null;
}
