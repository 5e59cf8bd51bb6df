/**
 * JupyterLab's own dialog, so that focus, Escape and themes are native; but SEND replies in place,
 * and it closes only when the job is there.
 */
import { Dialog } from '@jupyterlab/apputils';

import type { Job } from '../jobs/job';
import { SubmitForm } from './form';
import type { SubmitModel } from './model';
import { STATUS_ID } from './status';

/** Where Enter does what it does anywhere else, and does not send. */
const ENTER_CONTROLS = 'summary, button, textarea, [data-enter="own"]';

/** Asks for what a model wants to know, and sends it. */
export class SubmitDialog extends Dialog<unknown> {
  constructor(private readonly _model: SubmitModel) {
    const { trans } = _model;
    super({
      title: trans.__('SUBMIT JOB'),
      body: new SubmitForm(_model),
      hasClose: true,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('SEND'), className: SEND_CLASS })
      ]
    });
    this.addClass('jp-ToJobDialog');
    this.node.setAttribute('aria-label', trans.__('SUBMIT JOB'));
    this._sendButton = this.node.querySelector(`.${SEND_CLASS}`)!;
    this._sendButton.setAttribute('aria-describedby', STATUS_ID);
    _model.changed.connect(this._updateSendButton, this);
    this._updateSendButton();
  }

  /** Show the dialog; resolves to the job, or to null if the user thought better of it. */
  async run(): Promise<Job | null> {
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
    if (this._model.sendingKey !== null && !this._model.isWithdrawing) {
      void this._model.withdraw();
    } else {
      super.reject();
    }
  }

  /** Make room for another dialog: JupyterLab shows one at a time. */
  suspend(): void {
    this.isSuspended = true;
    super.reject();
  }

  /** Whether it closed for another dialog, and the user has said nothing yet. */
  isSuspended = false;

  override dispose(): void {
    this._model.changed.disconnect(this._updateSendButton, this);
    super.dispose();
  }

  /** Nothing: the model knows what is valid. */
  protected override _checkValidation(): void {}

  protected override _evtKeydown(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (isHandledByControl(event, target)) {
      return;
    }
    if (event.key === 'Enter' && event.repeat) {
      // The shortcut's own, still held down: sending takes a stroke of its own.
      stopEvent(event);
    } else if (
      event.key === 'Tab' &&
      !event.shiftKey &&
      target === this._sendButton
    ) {
      // From the last control to the first, which JupyterLab looked for before there were any.
      stopEvent(event);
      this.node.querySelector('button')?.focus();
    } else {
      super._evtKeydown(event);
    }
  }

  /** A disabled button would lose the focus, and with it Escape: it only says that it is. */
  private _updateSendButton(): void {
    const { isBlocked, sendingKey } = this._model;
    this._sendButton.setAttribute(
      'aria-disabled',
      String(isBlocked || sendingKey !== null)
    );
  }

  private readonly _sendButton: Element;
  private _job: Job | null = null;
}

const SEND_CLASS = 'jp-ToJobDialog-send';

/** Whether a control of the form does with the key what it does anywhere else. */
function isHandledByControl(event: KeyboardEvent, target: Element): boolean {
  return (
    target.closest('.jp-ToJobDialog-form') !== null &&
    (event.isComposing ||
      (event.key === 'Enter' && target.matches(ENTER_CONTROLS)) ||
      event.key.startsWith('Arrow'))
  );
}

function stopEvent(event: KeyboardEvent): void {
  event.stopPropagation();
  event.preventDefault();
}
