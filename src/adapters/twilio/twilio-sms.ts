/** Sends text messages by Twilio's HTTP API. */

import { toBase64 } from '../../engine/base/bytes/base64.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import {
  httpAddress,
  like,
  type OptionChecks,
  optional,
  readOptions,
  requiredOption,
} from '../../engine/base/read-options.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { isRetryableStatus, retryAfterOf } from '../../engine/host/retry-after.ts';
import type { SmsMessage, SmsSender } from '../../engine/operation/sms.port.ts';

export interface TwilioOptions {
  /** `AC` and 32 hexadecimal digits. */
  readonly accountSid: string;
  readonly authToken: string;
  /** The sender of messages without a `from`: a phone number, a sender name, or the SID of a messaging service (`MG...`). */
  readonly from?: string | undefined;
  /** The address of the API. Default `https://api.twilio.com`. */
  readonly url?: string | undefined;
}

const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_SHOWN = 500;

/**
 * Creates an SMS sender for Twilio. Its requests go through the option `http` of the orchestrator.
 *
 * @param options - see {@link TwilioOptions}
 * @throws TypeError for an option that can't be right
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { twilioSms } from 'ensemble-orchestrator/twilio';
 *
 * const twilio = twilioSms({
 *   accountSid: 'AC00000000000000000000000000000000', // process.env.TWILIO_ACCOUNT_SID
 *   authToken: 'the-token-of-the-account', // process.env.TWILIO_AUTH_TOKEN
 *   from: '+15005550006',
 * });
 * const orchestrator = createOrchestrator({
 *   sms: { twilio },
 *   ensembles: ['name: remind\nflow:\n  - { agent: text, operation: sms, config: { to: "${input.phone}", body: "See you at {{ time }}" } }'],
 * });
 * ```
 */
export function twilioSms(options: TwilioOptions): SmsSender {
  const { accountSid, authToken, from, url = 'https://api.twilio.com' } = readOptions('twilioSms', options, CHECKS);
  const address = `${url.replace(/\/+$/, '')}/2010-04-01/Accounts/${accountSid}/Messages.json`;
  const credentials = toBase64(new TextEncoder().encode(`${accountSid}:${authToken}`));
  const mask = (text: string) => text.replaceAll(credentials, '***').replaceAll(authToken, '***').slice(0, MAX_SHOWN);
  return {
    async send(message, { http, idempotencyKey, timeoutMs, signal }) {
      const request = {
        method: 'POST',
        url: address,
        headers: {
          authorization: `Basic ${credentials}`,
          accept: 'application/json',
          'content-type': 'application/x-www-form-urlencoded',
          'idempotency-key': idempotencyKey,
        },
        body: formOf(message, from),
        maxResponseBytes: MAX_RESPONSE_BYTES,
        partialBody: true,
        ...{ timeoutMs, signal },
      };
      let response: HttpResponse;
      try {
        response = await http.send(request);
      } catch (error) {
        signal.throwIfAborted();
        throw isOrchestratorError(error) && error.code !== 'INVALID_REQUEST' ? maybeSent(error) : error;
      }
      return { messageId: readAnswer(response, mask) };
    },
  };
}

const CHECKS: OptionChecks<TwilioOptions> = {
  accountSid: requiredOption(
    "the SID of a Twilio account: 'AC' and 32 hexadecimal digits",
    like(/^AC[0-9a-fA-F]{32}$/),
  ),
  authToken: requiredOption("the account's auth token, a text without spaces", like(/^[\x21-\x7e]+$/)),
  from: optional('a phone number, a sender name, or the SID of a messaging service; leave it out for none', like(/\S/)),
  url: httpAddress,
};

function formOf({ to, body, from }: SmsMessage, ownFrom: string | undefined): string {
  const sender = from ?? ownFrom;
  if (sender === undefined) {
    const message = 'the message has no sender: set `config.from` of the agent, or `from` of twilioSms';
    throw new OrchestratorError('NOT_CONFIGURED', message);
  }
  const isService = /^MG[0-9a-fA-F]{32}$/.test(sender);
  return new URLSearchParams({ To: to, [isService ? 'MessagingServiceSid' : 'From']: sender, Body: body }).toString();
}

/** An exchange that broke may have broken after the message was accepted. */
function maybeSent({ code, message, details, retryable }: OrchestratorError): OrchestratorError {
  const known = typeof details === 'object' && details !== null ? details : {};
  return new OrchestratorError(code, message, { retryable, details: { ...known, outcome: 'unknown' } });
}

/** @returns the SID of the message */
function readAnswer(response: HttpResponse, mask: (text: string) => string): string {
  const { status } = response;
  const answer = readJson(response);
  if (status < 200 || status > 299) throw refusal(response, answer, mask);
  const { sid, status: state, error_code: code, error_message: why } = answer ?? {};
  if (state === 'failed' || state === 'undelivered') {
    const message = `Twilio could not send the message${describeTwilioError({ code, message: why }, mask)}`;
    throw new OrchestratorError('AGENT_FAILED', message, { details: { status, ...codeOf(code) } });
  }
  if (typeof sid === 'string' && /^[A-Za-z0-9]{1,64}$/.test(sid) && mask(sid) === sid) return sid;
  // A retry could send the message a second time.
  const message = `Twilio answered ${status} without the \`sid\` of a message; the message may have been sent`;
  throw new OrchestratorError('AGENT_FAILED', message, { details: { status, outcome: 'unknown' } });
}

function readJson({ body }: HttpResponse): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

function refusal(
  { status, headers }: HttpResponse,
  answer: JsonObject | undefined,
  mask: (text: string) => string,
): OrchestratorError {
  const about = describeTwilioError(answer ?? {}, mask);
  const details = {
    status,
    ...codeOf(answer?.code),
    ...retryAfterOf(headers),
    ...(status >= 500 && { outcome: 'unknown' }),
  };
  if (status === 400) return new OrchestratorError('INVALID_INPUT', `Twilio refuses the message${about}`, { details });
  const why = status === 401 || status === 403 ? ': check `accountSid`, `authToken` and the rights of the account' : '';
  const message = `Twilio answered ${status}${why}${about}`;
  return new OrchestratorError('AGENT_FAILED', message, { retryable: isRetryableStatus(status), details });
}

function codeOf(code: unknown): { readonly code?: number } {
  return typeof code === 'number' ? { code } : {};
}

/** Twilio's own words and code. */
function describeTwilioError(
  { code, message }: { readonly code?: unknown; readonly message?: unknown },
  mask: (text: string) => string,
) {
  const words = typeof message === 'string' && message !== '' ? `: ${mask(message)}` : '';
  return `${words}${typeof code === 'number' ? ` (code ${code})` : ''}`;
}
