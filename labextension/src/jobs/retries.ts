/** Sends a request again if no answer came. */
import { ApiError } from './client';

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
