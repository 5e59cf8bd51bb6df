/**
 * Says in the user's language what the server says in English. The server's codes have sentences
 * here. They come first in another language, and its own sentence follows, which knows more.
 */
import {
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

const ENGLISH = nullTranslator.load('');

/** A sentence of the server, preceded by what its code means if that is in another language. */
export function explainCode(
  code: string | null,
  message: string,
  trans: TranslationBundle
): string {
  const text = code === null ? undefined : codeTexts(trans)[code];
  if (code === 'unauthenticated') {
    return text!; // the server's own sentence is for programs
  }
  const isSaid = text === undefined || text === codeTexts(ENGLISH)[code!];
  return isSaid ? message : `${text} ${message}`;
}

/** Why a flavor is not available, which the server says without a code. */
export function explainUnavailable(
  reason: string,
  trans: TranslationBundle
): string {
  const text = unavailableText(trans);
  return text === unavailableText(ENGLISH) ? reason : `${text} ${reason}`;
}

function unavailableText(trans: TranslationBundle): string {
  return trans.__('Not available here.');
}

/** What the codes of errors and of preflight's problems mean. */
function codeTexts(trans: TranslationBundle): Record<string, string> {
  return {
    bad_notebook: trans.__('The notebook cannot be run as it is.'),
    cleared: trans.__('The files of this job were cleaned up.'),
    cluster_refuses: trans.__('The cluster refuses the job.'),
    conflict: trans.__('This is not possible in its present state.'),
    damaged: trans.__('The record of this job is damaged.'),
    image_unpinned: trans.__('It is not known exactly which image would run.'),
    missing_input: trans.__('A file to send along is missing.'),
    never_fits: trans.__('No machine here is large enough for it.'),
    no_kernel: trans.__('The kernel of the notebook is missing there.'),
    no_node: trans.__('No machine of the cluster fits.'),
    not_checked: trans.__('The cluster did not answer in time.'),
    not_found: trans.__('It was not found.'),
    not_inspected: trans.__('The parameters cannot be read.'),
    not_writable: trans.__('The result cannot be written there now.'),
    over_budget: trans.__('There is no room left for your jobs.'),
    over_quota: trans.__('It is over the quota of the cluster.'),
    partly_submitted: trans.__('Only some of the jobs were submitted.'),
    plan_changed: trans.__('The job would run in another way than was said.'),
    refused: trans.__('It is not allowed.'),
    runs_as_root: trans.__('It would run as root.'),
    stale: trans.__('The notebook on the disk has changed.'),
    storage_full: trans.__('There is no space left for jobs.'),
    timed_out: trans.__('It took too long.'),
    too_large: trans.__('It is too large.'),
    unauthenticated: trans.__(
      'You are no longer logged in. Log in again in another tab, then try again.'
    ),
    unavailable: trans.__('What runs the jobs cannot be reached now.'),
    unknown_choice: trans.__('There is no such flavor, device or kernel.'),
    unknown_parameter: trans.__('The notebook does not declare a parameter.'),
    user_unknown: trans.__('It is not known as which user it runs.'),
    variables_dropped: trans.__('Some variables do not come along.'),
    volume_left: trans.__('A volume does not come along.')
  };
}
