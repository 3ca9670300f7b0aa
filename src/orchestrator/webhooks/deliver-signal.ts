/** Sends the signal of a webhook to the execution that its trigger finds, once for each signed request. */

import { hashText } from '../../engine/base/bytes/hash.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { isFinal } from '../../engine/execution/execution.ts';
import { EXECUTION_ID } from '../../engine/execution/id.ts';
import { isOwnId, isTag } from '../../engine/execution/start-once.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DocumentStore } from '../../engine/storage/document-store.port.ts';
import type { Webhook, WebhookDelivery } from '../../engine/webhook/webhook.ts';
import type { Executions } from '../runs/executions.ts';
import type { ExecutionHandle } from '../runs/handles.ts';
import type { ExecuteOptions } from '../runs/starts/execute-options.ts';

/** A signal that was sent. */
export interface Delivered {
  readonly executionId: string;
  readonly signal: string;
}

export interface DeliveryDependencies {
  readonly clock: Clock;
  readonly documents: DocumentStore;
  readonly executions: Executions;
}

/** A request that sends a signal. */
interface SignalRequest {
  readonly ensemble: string;
  readonly webhook: Webhook;
  readonly delivery: WebhookDelivery;
  /** What the trigger found in the request. */
  readonly found: string | undefined;
  readonly payload: Json;
  /** Equal for the same signed request. Undefined for a request without a signature. */
  readonly key: string | undefined;
  /** Starts an execution that the next request finds. */
  start(options: ExecuteOptions): Promise<ExecutionHandle>;
  handleOf(executionId: string): ExecutionHandle;
}

const KIND = 'webhook-signal';
/** Senders repeat a delivery for up to three days. */
const REMEMBERED_MS = 7 * 86_400_000;
/** How long a request counts as being handled whose process ended. */
const HANDLED_MS = 60_000;
const ACTIVE = ['waiting', 'running', 'queued'] as const;
/** How often a start is tried again because another request was first. */
const MAX_TRIES = 5;

/**
 * @throws NOT_FOUND if there is no execution, and none is started; CONFLICT if there are several, or while a twin of the request is
 *   handled; INVALID_INPUT for a request that names none
 */
export async function deliverSignal(
  request: SignalRequest,
  { clock, documents, executions }: DeliveryDependencies,
): Promise<Delivered | ExecutionHandle> {
  const { delivery, key } = request;
  const { signal } = delivery;
  const target = checkTarget(request.found, delivery);
  if (key === undefined) return deliver(request, target, executions);
  const keep = (expectedVersion: number, value: JsonObject, ms: number) => {
    const now = clock.now();
    return documents.write(KIND, key, {
      ...{ expectedVersion, now },
      document: { value, tag: '', updatedAt: now, expiresAt: now + ms },
    });
  };
  if (!(await keep(0, {}, HANDLED_MS))) {
    const { executionId, started } = (await documents.read(KIND, key, clock.now()))?.value ?? {};
    if (typeof executionId !== 'string') throw beingHandled();
    return started === true ? request.handleOf(executionId) : { executionId, signal };
  }
  try {
    const delivered = await deliver(request, target, executions);
    const isStart = !('signal' in delivered);
    await keep(1, { executionId: isStart ? delivered.id : delivered.executionId, started: isStart }, REMEMBERED_MS);
    return delivered;
  } catch (thrown) {
    await documents.write(KIND, key, { expectedVersion: 1, now: clock.now() });
    throw thrown;
  }
}

async function deliver(
  request: SignalRequest,
  target: string,
  executions: Executions,
): Promise<Delivered | ExecutionHandle> {
  const { delivery, payload, key } = request;
  const { signal } = delivery;
  for (let tries = 1; ; tries++) {
    const executionId = await findActive(target, request, executions);
    if (executionId !== undefined) {
      try {
        await executions.signal(executionId, signal, payload, key === undefined ? {} : { idempotencyKey: key });
        return { executionId, signal };
      } catch (thrown) {
        // It has ended in between.
        if (!isOrchestratorError(thrown, 'CONFLICT') || tries === MAX_TRIES) throw thrown;
        continue;
      }
    }
    if (!delivery.orStart) throw nobody(signal);
    try {
      const options = await startOptions(target, request, executions);
      if (options) return await request.start(options);
      if (tries === MAX_TRIES) throw beingHandled();
    } catch (thrown) {
      // Another request has started the execution in between.
      if (!isOrchestratorError(thrown, 'IDEMPOTENCY_KEY_REUSED') || tries === MAX_TRIES) throw thrown;
    }
  }
}

/** The tag or the id that the request names. */
function checkTarget(target: string | undefined, { by, text }: WebhookDelivery): string {
  if (target !== undefined && (by === 'tag' ? isTag(target) : EXECUTION_ID.test(target))) return target;
  const message = `the request names no execution: \`find.${by}\`, which is \`${text}\`, gives no ${by === 'tag' ? 'tag' : 'id'}`;
  throw new OrchestratorError('INVALID_INPUT', message);
}

async function findActive(
  target: string,
  { ensemble, delivery }: SignalRequest,
  executions: Executions,
): Promise<string | undefined> {
  if (delivery.by === 'id') {
    const found = await executions.status(target).catch(undefinedIfUnknown);
    return found?.ensemble === ensemble && !isFinal(found.status) ? found.id : undefined;
  }
  const found: string[] = [];
  for (const status of ACTIVE) {
    const page = await executions.list({ ensemble, tag: target, status, limit: 2 });
    found.push(...page.executions.map(({ id }) => id));
  }
  const [only, ...more] = new Set(found);
  if (more.length === 0) return only;
  const message = 'several executions have this tag, and the signal is for one; give each execution a tag of its own';
  throw new OrchestratorError('CONFLICT', message);
}

/**
 * Twins start one execution: the key is that of the last execution with the tag, which they both see.
 * @returns undefined if that one is active: another request has started it in between
 */
async function startOptions(
  target: string,
  { ensemble, webhook, delivery }: SignalRequest,
  executions: Executions,
): Promise<ExecuteOptions | undefined> {
  if (delivery.by === 'id') {
    // An id is used once: no execution is started under that of one that has ended.
    const isFree = isOwnId(target) && (await executions.status(target).catch(undefinedIfUnknown)) === undefined;
    if (isFree) return { id: target };
    throw nobody(delivery.signal);
  }
  const [last] = (await executions.list({ ensemble, tag: target, limit: 1 })).executions;
  if (last && !isFinal(last.status)) return undefined;
  const idempotencyKey = hashText(`${webhook.path} ${target} ${last?.id ?? ''}`);
  return { tags: [target], idempotencyKey, idempotencyScope: KIND };
}

function undefinedIfUnknown(thrown: unknown): undefined {
  if (!isOrchestratorError(thrown, 'NOT_FOUND')) throw thrown;
}

function beingHandled(): OrchestratorError {
  const message = 'another request for this execution is being handled; send it again';
  return new OrchestratorError('CONFLICT', message, { retryable: true });
}

function nobody(signal: string): OrchestratorError {
  return new OrchestratorError('NOT_FOUND', `no execution waits for the signal \`${signal}\` of this request`);
}
