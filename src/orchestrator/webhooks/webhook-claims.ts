/**
 * Which ensemble answers which webhook, for the definitions that were created at run time. Each path has one document in the storage,
 * which names the ensemble of each method, so that every process finds it and no two definitions get the same method and path.
 *
 * A definition claims its paths before it is stored. A claim whose definition does not have the trigger was left by a process that
 * ended in between, or by a change: another definition may take it over after a minute. It claims them again after it was stored,
 * because another change of the same definition may have released them meanwhile.
 */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { WebhookTrigger } from '../../engine/ensemble/ensemble.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DocumentStore, StoredDocument } from '../../engine/storage/document-store.port.ts';
import { methodsOf } from '../../engine/webhook/webhook.ts';
import { alwaysChanged } from '../changes.ts';
import type { StoredDefinitions } from '../definitions/stored-definitions.ts';

type Routes = Pick<WebhookTrigger, 'path' | 'methods'>;

export interface WebhookClaims {
  /** The stored ensemble of each method of a path. */
  owners(path: string): Promise<ReadonlyMap<string, string>>;
  /** @throws CONFLICT if another ensemble has one of the webhooks: then nothing is claimed */
  claim(ensemble: string, webhooks: readonly Routes[]): Promise<void>;
  /** Gives back what the stored definition of an ensemble does not have any more. */
  release(ensemble: string, webhooks: readonly Routes[]): Promise<void>;
}

interface Claim {
  readonly ensemble: string;
  /** Unix ms */
  readonly at: number;
}

type Claims = Readonly<Record<string, Claim>>;

const KIND = 'webhook';
const MAX_TRIES = 20;
const STALE_MS = 60_000;

export function createWebhookClaims(
  store: DocumentStore,
  definitions: StoredDefinitions,
  codeOwner: (method: string, path: string) => string | undefined,
  clock: Clock,
): WebhookClaims {
  const read = async (path: string): Promise<StoredDocument | undefined> => store.read(KIND, path, clock.now());
  const claimsOf = (document: StoredDocument | undefined) => (document?.value ?? {}) as unknown as Claims;

  const hasWebhook = async (ensemble: string, method: string, path: string): Promise<boolean> => {
    const item = await definitions.read(ensemble);
    const triggers = (item?.definition.trigger ?? []) as unknown as readonly WebhookTrigger[];
    return triggers.some((one) => one.type === 'webhook' && one.path === path && methodsOf(one).includes(method));
  };

  /** Changes the claims of a path. @param make - returns undefined for no change */
  const change = async (path: string, make: (claims: Claims) => Promise<Claims | undefined>): Promise<void> => {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const document = await read(path);
      const next = await make(claimsOf(document));
      if (!next) return;
      const now = clock.now();
      const isEmpty = Object.keys(next).length === 0;
      const value = next as unknown as JsonObject;
      const expectedVersion = document?.version ?? 0;
      const written = isEmpty
        ? await store.write(KIND, path, { expectedVersion, now })
        : await store.write(KIND, path, { expectedVersion, now, document: { value, tag: '', updatedAt: now } });
      if (written) return;
    }
    throw alwaysChanged(`webhook \`${path}\``);
  };

  const claimPath = (ensemble: string, trigger: Routes) => {
    const { path } = trigger;
    const methods = methodsOf(trigger);
    return change(path, async (claims) => {
      const now = clock.now();
      const next: Record<string, Claim> = { ...claims };
      for (const method of methods) {
        const inCode = codeOwner(method, path);
        if (inCode !== undefined) throw takenPath(inCode, method, path);
        const { ensemble: owner = ensemble, at = 0 } = claims[method] ?? {};
        if (owner === ensemble && at > now - STALE_MS / 2) continue;
        if (owner !== ensemble && (at > now - STALE_MS || (await hasWebhook(owner, method, path))))
          throw takenPath(owner, method, path);
        next[method] = { ensemble, at: now };
      }
      return methods.some((method) => next[method] !== claims[method]) ? next : undefined;
    });
  };

  const releasePath = (ensemble: string, trigger: Routes) =>
    change(trigger.path, async (claims) => {
      const { path } = trigger;
      const kept = { ...claims };
      for (const method of methodsOf(trigger)) {
        if (claims[method]?.ensemble === ensemble && !(await hasWebhook(ensemble, method, path))) delete kept[method];
      }
      return Object.keys(kept).length === Object.keys(claims).length ? undefined : kept;
    });

  const release: WebhookClaims['release'] = async (ensemble, webhooks) => {
    for (const one of webhooks) await releasePath(ensemble, one);
  };

  return {
    async owners(path) {
      const claims = claimsOf(await read(path));
      return new Map(Object.entries(claims).map(([method, { ensemble }]) => [method, ensemble]));
    },
    async claim(ensemble, webhooks) {
      for (const [i, one] of webhooks.entries()) {
        try {
          await claimPath(ensemble, one);
        } catch (thrown) {
          await release(ensemble, webhooks.slice(0, i));
          throw thrown;
        }
      }
    },
    release,
  };
}

function takenPath(owner: string, method: string, path: string): OrchestratorError {
  const message = `ensemble \`${owner}\` has a trigger for ${method} ${path}; change one of them`;
  return new OrchestratorError('CONFLICT', message);
}
