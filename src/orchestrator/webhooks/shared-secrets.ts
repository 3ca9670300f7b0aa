/** Webhooks that accept each other's requests: the signature of `service` covers no path, so they need different secrets. */

import type { Webhook } from '../../engine/webhook/webhook.ts';

/** @returns each webhook whose secret an earlier one has, with the path of that one */
export function sharedSecrets(webhooks: Iterable<Webhook>): ReadonlyMap<Webhook, string> {
  const owners = new Map<string, string>();
  const shared = new Map<Webhook, string>();
  for (const webhook of webhooks) {
    const { access, path } = webhook;
    if (access.type !== 'signature') continue;
    for (const secret of access.secrets) {
      const key = `${access.scheme} ${secret}`;
      const owner = owners.get(key);
      if (owner !== undefined && owner !== path) shared.set(webhook, owner);
      owners.set(key, owner ?? path);
    }
  }
  return shared;
}
