/**
 * A batch: a mail to each of many recipients, one after the other. Each try of a recipient is a stored part of the attempt, whether it
 * was sent or failed, so that it is never made again by an attempt that continues after a crash.
 *
 * | the stored try of a recipient | what the attempt does |
 * |---|---|
 * | was sent | nothing: it counts as sent |
 * | failed, in this attempt | nothing: it counts as failed |
 * | failed in an earlier attempt, and the same may pass now | makes the next try |
 * | failed for good in an earlier attempt of this execution | nothing: it counts as failed |
 * | failed in the execution that this one retries | makes the next try |
 * | is about another address, because the list is another one | makes the next try |
 *
 * The number of a part is `1000 * (try - 1) + position`, with both counted from 1.
 */

import { type ErrorCode, isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { MAX_BATCH, type Recipient } from './config.ts';
import { type CommonParts, commonParts, recipientAddress, recipientMessage } from './message.ts';
import { type Sending, sendMail } from './send.ts';

/** A recipient that the mail was not sent to. */
export interface BatchFailure {
  readonly email: string;
  /** Its position in `recipients`, counted from 0. */
  readonly index: number;
  readonly code: ErrorCode;
  readonly message: string;
}

/** The output of an `email` agent with `batch`. `sent` and `failed` together are the number of recipients. */
export interface BatchOutput {
  readonly sent: number;
  readonly failed: number;
  /** Of the mails that were sent, in the order of the recipients. */
  readonly messageIds: readonly string[];
  readonly errors: readonly BatchFailure[];
  readonly provider: string;
}

/** What is stored of a try. */
type StoredTry = {
  readonly email: string;
  /** The execution and the attempt that made it. */
  readonly by: string;
  /** Unix ms of its end. */
  readonly at: number;
} & ({ readonly messageId: string; readonly isError: false } | (FailedTry & { readonly isError: true }));

interface FailedTry {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly details: JsonObject;
}

interface Batch extends Sending {
  readonly common: CommonParts;
  readonly pace: Pace;
  /** Names this attempt. A retried execution has the stored parts of another one, and begins with attempt 1 again. */
  readonly by: string;
}

/**
 * @throws the failure of the first recipient if the mail was sent to none. `details` also has `sent` and `failed`. A retry of the agent
 *   may pass if it may pass for any recipient
 */
export async function sendBatch(sending: Sending, recipients: readonly Recipient[]): Promise<BatchOutput> {
  const { context, clock, provider } = sending;
  const { id, attempt } = context.execution;
  const pace = createPace(context.config.rateLimit ?? undefined, clock);
  const batch: Batch = { ...sending, common: commonParts(context), pace, by: `${id} ${attempt}` };
  const messageIds: string[] = [];
  const failures: (BatchFailure & FailedTry)[] = [];
  let refused: FailedTry | undefined;
  for (const [index, recipient] of recipients.entries()) {
    const tried = refused ?? (await sendTo(batch, recipient, index));
    if ('messageId' in tried) {
      messageIds.push(tried.messageId);
      continue;
    }
    failures.push({ ...tried, email: recipient.email, index });
    if (isAboutSender(tried))
      refused = { ...tried, message: `not tried, because of an earlier failure: ${tried.message}` };
  }
  const counts = { sent: messageIds.length, failed: failures.length };
  const [first] = failures;
  if (first && counts.sent === 0) {
    const { code, message, details } = first;
    const retryable = failures.some((one) => one.retryable);
    const what = failures.length === 1 ? message : `no mail of the batch was sent. The first failure: ${message}`;
    throw new OrchestratorError(code, what, { retryable, details: { ...details, ...counts } });
  }
  const errors = failures.map(({ email, index, code, message }) => ({ email, index, code, message }));
  return { ...counts, messageIds, errors, provider };
}

/** Whether a failure would meet every other recipient too: a setting is missing, or the provider refuses the caller. */
function isAboutSender({ code, retryable }: FailedTry): boolean {
  return !retryable && (code === 'NOT_CONFIGURED' || code === 'AGENT_FAILED');
}

type Tried = Extract<StoredTry, { isError: false }> | FailedTry;

/** The result of the last try of a recipient. Makes one try more if the stored ones ask for it. */
async function sendTo(batch: Batch, recipient: Recipient, index: number): Promise<Tried> {
  const { context, by, clock, pace } = batch;
  const { email } = recipient;
  /** How many stored tries of this position are about other addresses. A mail to another address has another key. */
  let others = 0;
  for (let tries = 0; ; tries++) {
    let isNew = false;
    const number = tries * MAX_BATCH + index + 1;
    const given = await context.step({ kind: 'send', number, name: partName(email) }, async () => {
      isNew = true;
      const made = await makeTry(batch, recipient, others === 0 ? `${index + 1}` : `${index + 1}-${others}`);
      return { ...made, email, by, at: clock.now() };
    });
    const stored = given as unknown as StoredTry;
    if (!isNew) pace.endedBefore(stored.at);
    if (stored.email !== email) {
      others += 1;
      continue;
    }
    if (!stored.isError || stored.by === by) return stored;
    const isFinal = !stored.retryable && stored.by.split(' ')[0] === context.execution.id;
    if (isFinal) return stored;
  }
}

/** The name of a part, which listings and events show. */
function partName(email: string): string {
  return email.length > 254 ? `${email.slice(0, 253)}…` : email;
}

/** Sends to one recipient. A failure is a result, unless the attempt was stopped. */
async function makeTry(batch: Batch, recipient: Recipient, place: string): Promise<JsonObject> {
  const { context, common, pace } = batch;
  const { signal, idempotencyKey } = context;
  const key = `${idempotencyKey}-send-${place}`;
  try {
    const address = recipientAddress(recipient.email);
    const message = recipientMessage(context, common, { address, data: recipient }, key);
    await pace.wait(signal);
    try {
      return { messageId: await sendMail(batch, message, key), isError: false };
    } finally {
      pace.ended();
    }
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return { ...toFailedTry(thrown), isError: true };
  }
}

function toFailedTry(thrown: unknown): FailedTry & JsonObject {
  if (!isOrchestratorError(thrown))
    return { code: 'AGENT_FAILED', message: messageOf(thrown), retryable: true, details: {} };
  const { code, message, retryable, details } = thrown;
  return { code, message, retryable, details: plainDetails(details) };
}

/** The facts of a failure: details of a sender may hold anything. */
function plainDetails(details: Readonly<Record<string, unknown>>): JsonObject {
  const facts = Object.entries(details).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  return Object.fromEntries(facts as [string, Json][]);
}

interface Pace {
  /** Waits until a send may begin. @throws the reason of the signal */
  wait(signal: AbortSignal): Promise<void>;
  /** A send has ended now. */
  ended(): void;
  /** A send ended before this attempt. @param at - Unix ms */
  endedBefore(at: number): void;
}

const SECOND = 1_000;

/**
 * A server may receive a mail at any moment of its send. So a send begins only when fewer than `rate` of the sends before it can have
 * been received within the last second: those that ended in it. A rate below 1 has one mail in a longer window.
 *
 * The process of this execution may have died in a send that is stored nowhere, so the attempt counts as the end of one.
 *
 * @param rate - mails per second. Undefined: no limit
 */
function createPace(rate: number | undefined, clock: Clock): Pace {
  if (rate === undefined) return { wait: async () => {}, ended() {}, endedBefore() {} };
  const count = Math.max(1, Math.floor(rate));
  const windowMs = rate < 1 ? SECOND / rate : SECOND;
  const began = { wall: clock.now(), monotonic: clock.monotonic() };
  /** Monotonic instants, in their order. */
  const ends: number[] = [began.monotonic];
  const add = (at: number) => {
    ends.push(at);
    ends.sort((a, b) => a - b);
    if (ends.length > count) ends.shift();
  };
  return {
    async wait(signal) {
      for (;;) {
        const first = ends[0] as number;
        const rest = ends.length < count ? 0 : first + windowMs - clock.monotonic();
        if (rest <= 0) return;
        await clock.sleep(Math.ceil(rest), signal);
      }
    },
    ended: () => add(clock.monotonic()),
    // A wall clock that was set back must not make the wait longer than one window.
    endedBefore: (at) => add(began.monotonic - Math.max(0, began.wall - at)),
  };
}
