/** Sends one attempt of a delivery to a webhook (the specification's delivery headers and its outbound signing). */

import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import type { StoredDelivery } from '../../engine/delivery/delivery.ts';
import type { WebhookTarget } from '../../engine/delivery/notification.ts';
import type { HttpClient, HttpHead, HttpResponse } from '../../engine/host/http.port.ts';
import { decodeText, maskSent } from '../../engine/host/peer-text.ts';
import { retryAfterOf } from '../../engine/host/retry-after.ts';
import type { MaskText } from '../../engine/interpreter/attempt/mask-secrets.ts';
import { headerPrefix, signRequest } from '../../engine/signing/sign-request.ts';
import { signStandard } from '../../engine/signing/sign-standard.ts';

/** What one attempt led to. */
export interface AttemptOutcome {
  /** `broken`: it failed, and the same attempt may succeed later. */
  readonly result: 'succeeded' | 'broken' | 'failed';
  readonly status?: number;
  readonly error?: string;
  readonly excerpt?: string;
  /** How long the receiver asks to wait. */
  readonly retryAfterMs?: number;
  /** The receiver wants no more deliveries. */
  readonly isGone?: boolean;
}

export interface WebhookSender {
  readonly http: HttpClient;
  readonly mask: MaskText;
  /** The word in the names of the headers. */
  readonly brand: string;
}

const MAX_ANSWER_BYTES = 1024 * 1024;
const EXCERPT_BYTES = 256;
const MAX_ERROR = 500;

/** @param attempt - counts from 1 @param now - Unix ms, the time of the signature */
export async function sendWebhook(
  { http, mask, brand }: WebhookSender,
  { id, event, body }: StoredDelivery,
  { url, secrets, timeoutMs, standard }: WebhookTarget,
  attempt: number,
  now: number,
): Promise<AttemptOutcome> {
  const prefix = headerPrefix(brand);
  const signer = { secrets, brand, now };
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'ensemble-orchestrator',
    [`${prefix}-Event`]: event,
    [`${prefix}-Delivery`]: id,
    [`${prefix}-Delivery-Attempt`]: String(attempt),
    ...signRequest(body, signer),
    ...(standard && signStandard(body, signer, id)),
  };
  const limits = { timeoutMs, maxResponseBytes: MAX_ANSWER_BYTES };
  try {
    // The status and the headers decide. The body is for the log only, as far as it can be read.
    const response = await http.send({ method: 'POST', url, headers, body, ...limits, partialBody: true });
    return { ...judge(response), ...excerptOf(response, mask, secrets) };
  } catch (thrown) {
    const isFinal = isOrchestratorError(thrown) && !thrown.retryable;
    return { result: isFinal ? 'failed' : 'broken', error: mask(messageOf(thrown)).slice(0, MAX_ERROR) };
  }
}

/** Repeated are 5xx and 408. Nothing else is (the specification's delivery retry). */
function judge({ status, headers }: HttpHead): AttemptOutcome {
  if (status >= 200 && status < 300) return { result: 'succeeded', status };
  const aborts = headers['webhook-delivery']?.trim().toLowerCase() === 'abort-message';
  if (!aborts && (status >= 500 || status === 408)) return { result: 'broken', status, ...retryAfterOf(headers) };
  return { result: 'failed', status, ...(status === 410 && { isGone: true }) };
}

/** The beginning of the answer. Only of a public address: other answers may show what is inside of a network. */
function excerptOf(
  { body, isPublic }: HttpResponse,
  mask: MaskText,
  secrets: readonly string[],
): { readonly excerpt?: string } {
  if (isPublic !== true || body.byteLength === 0) return {};
  // Masked before it is cut: a part of a secret would not be found.
  const text = decodeText(body);
  if (text === undefined) return {};
  const bytes = new TextEncoder().encode(mask(maskSent(text, secrets)));
  return { excerpt: new TextDecoder().decode(bytes.subarray(0, EXCERPT_BYTES), { stream: true }) };
}
