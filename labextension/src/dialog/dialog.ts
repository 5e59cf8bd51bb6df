/**
 * The submit dialog. It is JupyterLab's dialog, so focus, Escape and themes work as elsewhere, but
 * it stays open after SEND until the job exists.
 */
import { Dialog } from '@jupyterlab/apputils';

import type { Job } from '../jobs/job';
import { SubmitForm } from './form';
import type { SubmitModel } from './model';
import { STATUS_ID } from './status';

/** Controls in which Enter keeps its usual effect and does not send. */
const ENTER_CONTROLS = 'summary, button, textarea, [data-enter="own"]';

export class SubmitDialog extends Dialog<unknown> {
  constructor(private readonly _model: SubmitModel) {
    const { trans } = _model;
    const title = _model.source.title ?? trans.__('SUBMIT JOB');
    super({
      title,
      body: new SubmitForm(_model),
      hasClose: true,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('SEND'), className: SEND_CLASS })
      ]
    });
    this.addClass('jp-ToJobDialog');
    this.node.setAttribute('aria-label', title);
    this._sendButton = this.node.querySelector(`.${SEND_CLASS}`)!;
    this._sendButton.setAttribute('aria-describedby', STATUS_ID);
    _model.changed.connect(this._updateSendButton, this);
    this._updateSendButton();
  }

  /** Show the dialog; resolves to the job, or to null if the user cancels. */
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
   * Close. A submission that is being sent is withdrawn first, and its answer closes the dialog; a
   * second call closes at once, because an answer may never come.
   */
  override reject(): void {
    if (this._model.sendingKey !== null && !this._model.isWithdrawing) {
      void this._model.withdraw();
    } else {
      super.reject();
    }
  }

  /** Close for another dialog, because JupyterLab shows one at a time. */
  suspend(): void {
    this.isSuspended = true;
    super.reject();
  }

  /** Whether it was closed by `suspend` and not by the user. */
  isSuspended = false;

  override dispose(): void {
    this._model.changed.disconnect(this._updateSendButton, this);
    super.dispose();
  }

  /** Disabled: the model validates. */
  protected override _checkValidation(): void {}

  protected override _evtKeydown(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (isHandledByControl(event, target)) {
      return;
    }
    if (event.key === 'Enter' && event.repeat) {
      // Enter is still held down from the shortcut that opened the dialog.
      stopEvent(event);
    } else if (
      event.key === 'Tab' &&
      !event.shiftKey &&
      target === this._sendButton
    ) {
      // Move from the last control to the first. JupyterLab's own trap looked for it before the
      // form was rendered.
      stopEvent(event);
      this.node.querySelector('button')?.focus();
    } else {
      super._evtKeydown(event);
    }
  }

  /**
   * Mark SEND with `aria-disabled`. A truly disabled button would lose the focus, and with it
   * Escape.
   */
  private _updateSendButton(): void {
    const { isBlocked, sendingKey } = this._model;
    this._sendButton.setAttribute(
      'aria-disabled',
      String(isBlocked || sendingKey !== null)
    );
    const { count, isActive } = this._model.sweep;
    const { trans } = this._model;
    const label = this._sendButton.querySelector('.jp-Dialog-buttonLabel');
    const text =
      isActive && count !== null
        ? trans._n('SEND %1 JOB', 'SEND %1 JOBS', count)
        : trans.__('SEND');
    if (label !== null && label.textContent !== text) {
      label.textContent = text;
      this._sendButton.setAttribute('aria-label', text);
    }
  }

  private readonly _sendButton: Element;
  private _job: Job | null = null;
}

const SEND_CLASS = 'jp-ToJobDialog-send';

/** Whether a control of the form handles the key itself. */
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
