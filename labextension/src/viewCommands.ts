/**
 * The commands of views that are plugins of their own. Any of them may be switched off, so whoever
 * offers one asks first whether it exists.
 */
export const ViewCommandIDs = {
  /** Shows one job; its argument is `name`. */
  details: 'jupyter-to-job:show-details',
  /** Removes old results from the workspace, after a question. */
  cleanUp: 'jupyter-to-job:clean-up',
  /** Compares the results of a group; its argument is `group`. */
  results: 'jupyter-to-job:show-results'
} as const;
