/** The `sms` operation: sends one text message. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { type Deadline, underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { Operation } from '../../engine/operation/operation.port.ts';
import { SENT } from '../../engine/operation/sent-message.ts';
import type { SmsSender } from '../../engine/operation/sms.port.ts';
import { checkSmsConfig, type SmsConfig, senderName, smsConfig } from './config.ts';

/** The output of an `sms` agent. */
export interface SmsOutput {
  /** The id of the message at the provider. */
  readonly messageId: string;
  readonly success: true;
  readonly provider: string;
}

const TIMEOUT_MS = 30_000;

/** @param dependencies - `senders`: the SMS senders by name. Only own keys count */
export function smsOperation(dependencies: {
  readonly senders: Readonly<Record<string, SmsSender>>;
  readonly http: HttpClient;
  readonly clock: Clock;
}): Operation<SmsConfig> {
  const { http, clock } = dependencies;
  const senders = new Map(Object.entries(dependencies.senders));
  return {
    name: 'sms',
    get config() {
      return smsConfig();
    },
    texts: { body: 'template' },
    readsOnlyInput: () => true,
    check: (config) => checkSmsConfig(config, senders),
    output: SENT,
    needsValues: () => [{ path: ['to'], what: 'a message needs a receiver' }],
    needs(config) {
      const name = senderName(config, senders);
      return name === undefined ? [] : [`sms:${name}`];
    },
    async run({ config, signal, idempotencyKey, logger }): Promise<SmsOutput> {
      const provider = senderName(config, senders);
      const sender = provider === undefined ? undefined : senders.get(provider);
      if (provider === undefined || !sender) {
        const what = provider === undefined ? 'the SMS sender of this agent' : `SMS sender \`${provider}\``;
        throw new OrchestratorError('NOT_CONFIGURED', `${what} is not configured in this process`);
      }
      const { to, body, from } = config;
      const message = { to, body, ...(typeof from === 'string' && { from }) };
      try {
        const { messageId } = await underDeadline(deadlineOf(provider, signal, clock), (within) =>
          sender.send(message, { http, idempotencyKey, timeoutMs: TIMEOUT_MS, signal: within }),
        );
        if (typeof messageId !== 'string') throw new TypeError('the sender gave no `messageId`');
        return { messageId, success: true, provider };
      } catch (thrown) {
        signal.throwIfAborted();
        if (isOrchestratorError(thrown)) throw thrown;
        // The message of another error may contain passwords. Only the log receives it.
        logger.error({ err: thrown, provider }, 'an SMS sender failed');
        const what = `SMS sender \`${provider}\` failed; the log has its error`;
        const details = { outcome: 'unknown' };
        throw new OrchestratorError('AGENT_FAILED', what, { cause: thrown, retryable: true, details });
      }
    },
  };
}

/** Also for senders that do not end a call in time. */
function deadlineOf(provider: string, signal: AbortSignal, { setTimer }: Clock): Deadline {
  const message = `SMS sender \`${provider}\` did not answer within ${TIMEOUT_MS} ms`;
  const details = { timeoutMs: TIMEOUT_MS, outcome: 'unknown' };
  const late = () => new OrchestratorError('TIMEOUT', message, { retryable: true, details });
  return { timeoutMs: TIMEOUT_MS, setTimer, signal, late };
}
