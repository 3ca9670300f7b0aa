/** The webhooks of a definition that is created at run time, by which others start it. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { TriggerDefinition, WebhookTrigger } from '../../engine/ensemble/ensemble.ts';

/** The scope of those who may start ensembles. */
const STARTS = 'execute:ensembles';

export function webhooksOf({ trigger = [] }: JsonObject): readonly WebhookTrigger[] {
  return (trigger as unknown as readonly TriggerDefinition[]).filter((one) => one.type === 'webhook');
}

/** @throws FORBIDDEN for a definition with a webhook, if the caller may not start ensembles */
export function refuseWebhooks(
  definition: JsonObject,
  { webhooks = true }: { readonly webhooks?: boolean | undefined },
): void {
  if (webhooks || webhooksOf(definition).length === 0) return;
  const message = `a definition with a webhook is started by callers that need no token; to store it, or to choose its versions, the token needs the scope \`${STARTS}\` too`;
  throw new OrchestratorError('FORBIDDEN', message, { details: { requiredScope: STARTS } });
}
