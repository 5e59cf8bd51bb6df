/**
 * JupyterLab's own dialog, so that focus, Escape and themes are native; but SEND replies in place,
 * and it closes only when the job is there.
 */
import { Dialog } from '@jupyterlab/apputils';

import type { Job } from '../jobs/job';
import { Form } from './form';
import type { SubmitModel } from './model';
import { ANSWER } from './status';

/** Where Enter does what it does anywhere else, and does not send. */
const KEEPS_ENTER = 'summary, button, textarea, [data-enter="own"]';

/** Asks for what a model wants to know, and sends it. */
export class SubmitDialog extends Dialog<unknown> {
  constructor(private readonly _model: SubmitModel) {
    const { trans } = _model;
    super({
      title: trans.__('SUBMIT JOB'),
      body: new Form(_model),
      hasClose: true,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('SEND'), className: SEND })
      ]
    });
    this.addClass('jp-ToJobDialog');
    this.node.setAttribute('aria-label', trans.__('SUBMIT JOB'));
    this._send = this.node.querySelector(`.${SEND}`)!;
    this._send.setAttribute('aria-describedby', ANSWER);
    _model.changed.connect(this._update, this);
    this._update();
  }

  /** Show the dialog; resolves to the job, or to null if the user thought better of it. */
  async ask(): Promise<Job | null> {
    await this.launch();
    return this._job;
  }

  override resolve(index?: number): void {
    if (index === 0) {
      this.reject();
    } else {
      void this._model.send().then(job => {
        this._job = job;
        if (job !== null) {
          super.resolve(index);
        }
      });
    }
  }

  /**
   * Close; but what is being sent is called off first, and its answer tells whether it was. Who does
   * not wait for that closes all the same: an answer may never come.
   */
  override reject(): void {
    if (this._model.sending !== null && !this._model.isCallingOff) {
      void this._model.callOff();
    } else {
      super.reject();
    }
  }

  /** Make room for another dialog: JupyterLab shows one at a time. */
  giveWay(): void {
    this.hasGivenWay = true;
    super.reject();
  }

  /** Whether it closed for another dialog, and the user has said nothing yet. */
  hasGivenWay = false;

  override dispose(): void {
    this._model.changed.disconnect(this._update, this);
    super.dispose();
  }

  /** Nothing: the model knows what is valid. */
  protected override _checkValidation(): void {}

  protected override _evtKeydown(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (isKept(event, target)) {
      return;
    }
    if (event.key === 'Enter' && event.repeat) {
      // The shortcut's own, still held down: sending takes a stroke of its own.
      swallow(event);
    } else if (
      event.key === 'Tab' &&
      !event.shiftKey &&
      target === this._send
    ) {
      // From the last control to the first, which JupyterLab looked for before there were any.
      swallow(event);
      this.node.querySelector('button')?.focus();
    } else {
      super._evtKeydown(event);
    }
  }

  /** A disabled button would lose the focus, and with it Escape: it only says that it is. */
  private _update(): void {
    const { isBlocked, sending } = this._model;
    this._send.setAttribute(
      'aria-disabled',
      String(isBlocked || sending !== null)
    );
  }

  private readonly _send: Element;
  private _job: Job | null = null;
}

const SEND = 'jp-ToJobDialog-send';

/** Whether a control of the form does with the key what it does anywhere else. */
function isKept(event: KeyboardEvent, target: Element): boolean {
  return (
    target.closest('.jp-ToJobDialog-form') !== null &&
    (event.isComposing ||
      (event.key === 'Enter' && target.matches(KEEPS_ENTER)) ||
      event.key.startsWith('Arrow'))
  );
}

function swallow(event: KeyboardEvent): void {
  event.stopPropagation();
  event.preventDefault();
}
