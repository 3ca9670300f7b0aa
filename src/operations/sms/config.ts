/** The config of the `sms` operation: its schema, and the checks at load. */

import * as z from 'zod/mini';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { oneOf, quoted } from '../../engine/base/wording.ts';
import type { ConfigIssue } from '../../engine/operation/operation.port.ts';
import type { SmsSender } from '../../engine/operation/sms.port.ts';
import type { StandardSchema } from '../../engine/operation/standard-schema.port.ts';

/** In `from` and `provider`, null means absent, so that an expression can leave an option out. */
export interface SmsConfig {
  /** A phone number in E.164 form. */
  readonly to: string;
  readonly body: string;
  readonly from?: string | null | undefined;
  /** The name of an entry of the option `sms`. It may be left out if there is one entry. */
  readonly provider?: string | null | undefined;
}

/** The longest body, in UTF-16 units: the limit of Twilio. */
const MAX_BODY = 1_600;
const MAX_FROM = 64;
const PHONE_NUMBER = /^\+[1-9]\d{6,14}$/;

const NUMBER_RULE =
  'must be a phone number in E.164 form, in quotes: + and the country code, then the number, 7 to 15 digits without spaces, such as "+48123456789"';

export const smsConfig = once((): StandardSchema<unknown, SmsConfig> => {
  return z.strictObject({
    to: z.string(NUMBER_RULE).check(z.regex(PHONE_NUMBER, NUMBER_RULE)),
    body: z.string('must be text').check(
      z.refine((text) => text.trim() !== '', 'must not be empty'),
      z.maxLength(MAX_BODY, `must have at most ${MAX_BODY} characters; an emoji counts as two or more`),
    ),
    from: z.nullish(
      z
        .string('must be text; write a phone number in quotes')
        .check(
          z.regex(
            new RegExp(`^[^\\p{Cc}]{1,${MAX_FROM}}$`, 'u'),
            `must have 1 to ${MAX_FROM} characters, and no control characters`,
          ),
        ),
    ),
    provider: z.nullish(z.string('must be text')),
  });
});

export type SmsSenders = ReadonlyMap<string, SmsSender>;

/** The name of the sender that a config means; undefined if it names none and there are several, or none. */
export function senderName({ provider }: JsonObject | SmsConfig, senders: SmsSenders): string | undefined {
  if (typeof provider === 'string') return provider;
  return senders.size === 1 ? [...senders.keys()][0] : undefined;
}

/** Problems of a config as written that the schema can't find. */
export function checkSmsConfig({ provider }: JsonObject, senders: SmsSenders): readonly ConfigIssue[] {
  const names = [...senders.keys()];
  if (provider === undefined || provider === null) {
    if (names.length === 1) return [];
    if (names.length > 1)
      return [{ path: [], message: `needs a \`provider\`: several are configured; write ${oneOf(names)}` }];
    const message = `needs an SMS sender: pass createOrchestrator the option ${TWILIO}`;
    return [{ path: [], message, notConfigured: true }];
  }
  if (typeof provider !== 'string' || senders.has(provider)) return [];
  if (provider.includes('${')) {
    const message = 'must be a plain name: the sender is chosen when the definition is loaded';
    return [{ path: ['provider'], message }];
  }
  const configured = names.length === 0 ? '' : ` (configured: ${names.map(quoted).join(', ')})`;
  const remedy = provider === 'twilio' ? TWILIO : quoted(`sms.${provider}`);
  const message = `there is no SMS sender ${quoted(provider)}${configured}; pass createOrchestrator the option ${remedy}`;
  const suggestion = suggestName(provider, names);
  return [{ path: ['provider'], message, notConfigured: true, ...(suggestion !== undefined && { suggestion }) }];
}

const TWILIO =
  "`sms: { twilio: twilioSms({ accountSid, authToken, from }) }`, with `twilioSms` from 'ensemble-orchestrator/twilio'";
