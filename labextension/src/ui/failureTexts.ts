/** What the jobs table and the commands of a group say of jobs with which an action failed. */
import type { TranslationBundle } from '@jupyterlab/translation';

/** What to say of some of several jobs, before the reason. */
export type FailureTexts = {
  /** What could not be done. */
  failure: (failed: number, total: number) => string;
  /** What may have been done, without an answer. */
  uncertainty: (failed: number, total: number) => string;
};

export function cancelFailureTexts(trans: TranslationBundle): FailureTexts {
  return {
    failure: (failed, total) =>
      trans.__('%1 of %2 jobs were not cancelled', failed, total),
    uncertainty: (failed, total) =>
      trans.__(
        'It is not known whether %1 of %2 jobs were cancelled',
        failed,
        total
      )
  };
}

export function rerunFailureTexts(trans: TranslationBundle): FailureTexts {
  return {
    failure: (failed, total) =>
      trans.__('%1 of %2 jobs were not rerun', failed, total),
    uncertainty: (failed, total) =>
      trans.__(
        'It is not known whether %1 of %2 jobs were rerun',
        failed,
        total
      )
  };
}

export function deleteFailureTexts(trans: TranslationBundle): FailureTexts {
  return {
    failure: (failed, total) =>
      trans.__('%1 of %2 jobs were not deleted', failed, total),
    uncertainty: (failed, total) =>
      trans.__(
        'It is not known whether %1 of %2 jobs were deleted',
        failed,
        total
      )
  };
}
