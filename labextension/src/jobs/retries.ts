/** Sends a request again if no answer came, by itself or when the user asks for it again. */
import { UUID } from '@lumino/coreutils';

import { ApiError, isUncertain } from './client';

/** Delays before each retry of a submission that got no answer, in milliseconds. */
export const RETRY_DELAYS_MS = [500, 2000];

/**
 * Send until there is an answer. A submission's idempotency key prevents a second job.
 *
 * @param delays before each further try, in milliseconds
 */
export async function sendWithRetries<T>(
  send: () => Promise<T>,
  delays: readonly number[]
): Promise<T> {
  for (const delay of delays) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof ApiError) || error.failure !== 'unreachable') {
        throw error;
      }
      await new Promise(resolve => setTimeout(resolve, delay));
    }
  }
  return send();
}

/** Keeps the keys of submissions of which nobody knows what became: sent again, they are one job. */
export class UnansweredKeys {
  /**
   * Send a request with the given key. Without one it gets that of the same request if this had no
   * answer, and else a new one. It gets a new one, too, where the earlier request was carried out
   * and its job has ended before this one: then the user wants another job.
   *
   * @param request what tells it from others, as JSON has it
   * @param hadEnded whether an answer is a job that the user saw end before this request
   */
  async send<T>(
    request: unknown,
    key: string | undefined,
    send: (key: string) => Promise<T>,
    hadEnded: (answer: T) => boolean
  ): Promise<T> {
    if (key !== undefined) {
      return send(key);
    }
    const text = JSON.stringify(request);
    const earlierKey = this._keys.get(text);
    this._keys.delete(text);
    if (earlierKey !== undefined) {
      const answer = await this._sendWith(earlierKey, text, send);
      if (!hadEnded(answer)) {
        return answer;
      }
    }
    return this._sendWith(UUID.uuid4(), text, send);
  }

  /** Send a request, and keep its key if it gets no answer. */
  private async _sendWith<T>(
    key: string,
    text: string,
    send: (key: string) => Promise<T>
  ): Promise<T> {
    try {
      return await send(key);
    } catch (error) {
      if (isUncertain(error)) {
        this._keys.set(text, key);
      }
      throw error;
    }
  }

  private readonly _keys = new Map<string, string>();
}
