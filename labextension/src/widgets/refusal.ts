/** Why a notebook was not submitted, in plain words. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { ApiError } from '../client';
import { CannotFreeze, SaveRefused } from '../freeze';
import { toast } from './toast';

/** Tell the user what went wrong with a submission, unless they know already. */
export function tellRefusal(error: unknown, trans: TranslationBundle): void {
  if (error instanceof SaveRefused) {
    return;
  }
  if (!(error instanceof ApiError || error instanceof CannotFreeze)) {
    console.error(error);
  }
  toast({ type: 'error', text: wording(error, trans) }, trans);
}

function wording(error: unknown, trans: TranslationBundle): string {
  if (!(error instanceof ApiError)) {
    return trans.__(
      'Not submitted: %1',
      error instanceof Error ? error.message : String(error)
    );
  }
  switch (error.failure) {
    case 'refused':
      return trans.__(
        'Not submitted: %1',
        [error.message, error.hint].filter(Boolean).join(' ')
      );
    case 'missing':
      return trans.__(
        'Not submitted: the server part of Jupyter to Job is not installed or not enabled on this server.'
      );
    case 'unreachable':
      return trans.__(
        'The connection to the server was lost: it is not known whether the notebook was submitted.'
      );
    case 'broken':
      return trans.__(
        'Not submitted: the server answered with an error (%1). Its log says more.',
        error.message
      );
  }
}
