/** What every part of the form is given. */
import type { SubmitModel } from './model';

/** The model that it shows. */
export type ModelProps = { model: SubmitModel };
