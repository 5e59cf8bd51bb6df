/** Pictures among the metrics, small: each is loaded when it comes in sight, a few at a time. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Widget } from '@lumino/widgets';
import { type ReactElement, useEffect, useRef, useState } from 'react';

import type { IResultsApi } from '../jobs/client';
import { errorText } from '../ui/errors';

/** Pictures that are loaded at a time: for each of them the server reads a whole result. */
const AT_ONCE = 3;

/** Keeps the pictures that were loaded, as addresses. */
export class PictureStore implements IDisposable {
  constructor(private readonly _api: Pick<IResultsApi, 'getPicture'>) {}

  isDisposed = false;

  /** Load a picture, unless that was done; resolves to its address in this page. */
  load(job: string, metric: string): Promise<string> {
    const key = JSON.stringify([job, metric]);
    let loading = this._loads.get(key);
    if (loading === undefined) {
      loading = this._enqueue(() => this._api.getPicture(job, metric)).then(
        picture => {
          const address = URL.createObjectURL(picture);
          this._addresses.push(address);
          return address;
        }
      );
      this._loads.set(key, loading);
      loading.catch(() => this._loads.delete(key));
    }
    return loading;
  }

  dispose(): void {
    this.isDisposed = true;
    this._addresses.forEach(address => URL.revokeObjectURL(address));
    this._loads.clear();
  }

  private async _enqueue<T>(load: () => Promise<T>): Promise<T> {
    if (this._running >= AT_ONCE) {
      await new Promise<void>(resolve => this._waiting.push(resolve));
    }
    this._running += 1;
    try {
      return await load();
    } finally {
      this._running -= 1;
      this._waiting.shift()?.();
    }
  }

  private readonly _loads = new Map<string, Promise<string>>();
  private readonly _addresses: string[] = [];
  private readonly _waiting: (() => void)[] = [];
  private _running = 0;
}

type Props = {
  store: PictureStore;
  job: string;
  metric: string;
  trans: TranslationBundle;
};

/** A picture of a run, small; a click shows it large. */
export function Picture({ store, job, metric, trans }: Props): ReactElement {
  const [address, setAddress] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const holder = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    let isGone = false;
    const load = () =>
      void store.load(job, metric).then(
        loaded => {
          observer.disconnect();
          if (!isGone) {
            setAddress(loaded);
          }
        },
        (reason: unknown) => !isGone && setError(reason)
      );
    // What failed is tried again when it comes in sight once more.
    const observer = new IntersectionObserver(entries => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) {
        load();
      }
    });
    observer.observe(holder.current!);
    return () => {
      isGone = true;
      observer.disconnect();
    };
  }, [store, job, metric]);
  const label = trans.__('%1 of %2', metric, job);
  return (
    <span className="jp-ToJobResults-picture" ref={holder}>
      {address !== null ? (
        <button
          aria-label={trans.__('Show %1 large', label)}
          onClick={() => void showLarge(address, label, trans)}
        >
          <img src={address} alt={label} />
        </button>
      ) : error === null ? (
        trans.__('Loading…')
      ) : (
        <span title={errorText(error, trans, false)}>
          {trans.__('No picture')}
        </span>
      )}
    </span>
  );
}

async function showLarge(
  address: string,
  label: string,
  trans: TranslationBundle
): Promise<void> {
  const body = new Widget();
  const picture = document.createElement('img');
  picture.src = address;
  picture.alt = label;
  picture.className = 'jp-ToJobResults-large';
  body.node.append(picture);
  await showDialog({
    title: label,
    body,
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}
