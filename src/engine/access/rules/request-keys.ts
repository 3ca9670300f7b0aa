/** Requests with an `Idempotency-Key`: each is run once within 24 hours, and its twins get the answer of the first. */

import { fromBase64, toBase64 } from '../../base/bytes/base64.ts';
import { hashText } from '../../base/bytes/hash.ts';
import { OrchestratorError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { withTimeout } from '../../base/time/with-timeout.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { Logger } from '../../host/logger.port.ts';
import type { DocumentStore } from '../../storage/document-store.port.ts';
import type { KeptAnswer, KeyedRequest, RequestKeys } from '../request-keys.port.ts';

const KIND = 'request';
const KEPT_MS = 24 * 3_600_000;
/** A process that dies during a request leaves its key taken for this long. */
const RUNNING_MS = 60_000;
const MAX_WAIT_MS = 30_000;
const PAUSE_MS = 50;
const nothing = () => {};

export function createRequestKeys(dependencies: {
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** See `StorageCapabilities`. */
  readonly sharesPromises: boolean;
}): RequestKeys {
  const { documents, clock, logger, sharesPromises } = dependencies;
  /** The requests that run in this process, by the names of their keys, where requests can wait for one promise. */
  const running = new Map<string, Promise<unknown>>();

  /** Waits for the end of the request, if it runs here. A twin need not ask the store before that. */
  const whenEndedHere = async (name: string, ms: number): Promise<void> => {
    const here = running.get(name);
    if (here) await withTimeout(here, ms, (delay, callback) => clock.setTimer(delay, callback));
  };

  const runHere = <Answer>(name: string, run: () => Promise<Answer>): Promise<Answer> => {
    const answer = run();
    if (!sharesPromises) return answer;
    const ended = answer.then(nothing, nothing).then(() => running.delete(name));
    running.set(name, ended);
    return answer;
  };

  const put = (name: string, expectedVersion: number, value: JsonObject, keptMs: number) => {
    const now = clock.now();
    const document = { value, tag: name, updatedAt: now, expiresAt: now + keptMs };
    return documents.write(KIND, name, { expectedVersion, document, now });
  };

  const runFirst = async <Answer extends KeptAnswer>(
    name: string,
    { asked, secret }: KeyedRequest,
    run: () => Promise<Answer>,
  ): Promise<Answer> => {
    // The request has its effect and its answer, whatever happens to its key.
    const keep = async (write: () => Promise<unknown>) => {
      try {
        await write();
      } catch (err) {
        logger.warn({ err }, 'the answer to a request could not be kept for its `Idempotency-Key`');
      }
    };
    const release = () => keep(async () => documents.write(KIND, name, { expectedVersion: 1, now: clock.now() }));
    let answer: Answer;
    try {
      answer = await run();
    } catch (thrown) {
      await release();
      throw thrown;
    }
    const { status, json, headers } = answer;
    const keepAnswer = async () => {
      const sealed = await encrypt(JSON.stringify({ status, json, headers }), secret);
      return put(name, 1, { asked, answer: sealed }, KEPT_MS);
    };
    await (status < 400 ? keep(keepAnswer) : release());
    return answer;
  };

  return {
    async once(request, run) {
      const { caller, key, asked, secret } = request;
      const name = hashText(`${caller}\n${key}`);
      for (const end = clock.monotonic() + MAX_WAIT_MS; ; ) {
        await whenEndedHere(name, end - clock.monotonic());
        if (await put(name, 0, { asked }, RUNNING_MS)) {
          return runHere(name, () => runFirst(name, request, run));
        }
        const found = await documents.read(KIND, name, clock.now());
        if (found && found.value.asked !== asked) {
          const message = 'the `Idempotency-Key` was used before for another request; use a new key for each request';
          throw new OrchestratorError('IDEMPOTENCY_KEY_REUSED', message);
        }
        if (found?.value.answer !== undefined) return JSON.parse(await decrypt(found.value.answer, secret));
        if (clock.monotonic() >= end) {
          const message = 'the first request with this `Idempotency-Key` still runs; send it again later';
          throw new OrchestratorError('CONFLICT', message, { retryable: true });
        }
        if (!running.has(name)) await clock.sleep(PAUSE_MS);
      }
    },
  };
}

const IV_BYTES = 12;

async function cipherOf(secret: string): Promise<CryptoKey> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  return crypto.subtle.importKey('raw', digest, 'AES-GCM', false, ['encrypt', 'decrypt']);
}

async function encrypt(text: string, secret: string): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const cipher = { name: 'AES-GCM', iv };
  const sealed = await crypto.subtle.encrypt(cipher, await cipherOf(secret), new TextEncoder().encode(text));
  return `${toBase64(iv)}.${toBase64(new Uint8Array(sealed))}`;
}

/** @throws INTERNAL if it was stored under another secret, or is damaged */
async function decrypt(stored: Json, secret: string): Promise<string> {
  const [iv, sealed] = String(stored).split('.').map(fromBase64);
  try {
    const cipher = { name: 'AES-GCM', iv: iv as Uint8Array<ArrayBuffer> };
    const key = await cipherOf(secret);
    return new TextDecoder().decode(await crypto.subtle.decrypt(cipher, key, sealed as Uint8Array<ArrayBuffer>));
  } catch (cause) {
    throw new OrchestratorError('INTERNAL', 'the answer that was kept for an `Idempotency-Key` is damaged', { cause });
  }
}
