/** The inbound webhooks of an orchestrator: finds the trigger of a request, checks its sender, and starts its ensemble. */

import { hashText } from '../../engine/base/bytes/hash.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { equalJson, type Json } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import { once } from '../../engine/base/once.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import {
  checkCredentials,
  checkSignature,
  readSignature,
  type SenderVerdict,
} from '../../engine/signing/check-sender.ts';
import { type SignedRequest, signatureHeaders } from '../../engine/signing/signature-schemes.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { keepRequest, type RequestReader } from '../../engine/webhook/kept-request.ts';
import { type BodyKind, type SignatureScheme, WEBHOOK_ROOT, type Webhook } from '../../engine/webhook/webhook.ts';
import { canonicalWebhookPath } from '../../engine/webhook/webhook-path.ts';
import type { Catalog } from '../definitions/catalog.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { type ConnectedOptions, DEFAULT_BRAND } from '../options/options.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import type { Executions } from '../runs/executions.ts';
import type { ExecutionHandle } from '../runs/handles.ts';
import type { CallChain, ExecuteOptions } from '../runs/starts/execute-options.ts';
import type { SteadyClock } from '../timed/steady-clock.ts';
import { type Delivered, deliverSignal } from './deliver-signal.ts';
import { sharedSecrets } from './shared-secrets.ts';
import { createWebhookClaims, type WebhookClaims } from './webhook-claims.ts';

/** A webhook in a listing. */
export interface WebhookItem {
  readonly path: string;
  readonly methods: readonly string[];
  readonly ensemble: string;
  readonly auth: 'public' | 'bearer' | 'basic' | 'signature' | 'oauth';
  readonly scheme?: SignatureScheme;
  readonly async: boolean;
  /** The signal that it sends in place of a start. */
  readonly signal?: string;
  /** `code`: passed to `createOrchestrator`. `store`: created at run time. */
  readonly source: 'code' | 'store';
  /** Whether it starts executions. A webhook in code always does. */
  readonly active: boolean;
}

/** What a handler knows of a request. */
export interface WebhookRequest extends SignedRequest, Pick<RequestReader, 'query' | 'headers'> {
  readonly method: string;
}

/** A webhook that a handler serves. */
export interface ServedWebhook {
  readonly isPublic: boolean;
  readonly isAsync: boolean;
  readonly maxBodyBytes: number | undefined;
  readonly accept: readonly BodyKind[];
  /** The value of `WWW-Authenticate`. */
  readonly challenge: string | undefined;
  /** The headers that prove who the sender is, in lower case: no execution reads them. */
  readonly credentialHeaders: readonly string[];
  /** Checks the sender. @param readBody - called only if the headers are right and the body is signed */
  check(request: WebhookRequest, readBody: () => Promise<Uint8Array>): Promise<SenderVerdict>;
  /**
   * Starts an execution, or finds the one that the same signed request has started. Or it sends a signal, if that is what the trigger does.
   * @throws INVALID_INPUT; OVERLOADED; CONFLICT if the webhook was changed meanwhile; NOT_FOUND if nobody gets the signal
   */
  receive(request: ReceivedRequest): Promise<ExecutionHandle | Delivered>;
}

/** A request whose sender was checked. */
export interface ReceivedRequest extends RequestReader {
  readonly method: string;
  readonly input: Json;
  /** Of the verdict about the sender. */
  readonly identity: string | undefined;
  readonly chain: CallChain | undefined;
}

export interface Webhooks {
  /** All webhooks, in the order of their paths. */
  list(): Promise<readonly WebhookItem[]>;
}

/** What the handlers of the library see of them. */
export interface ServedWebhooks extends Webhooks {
  /**
   * The webhooks of a path, by method.
   * @param path - as in the URL, without the `basePath`
   * @param method - of the request: for a webhook in code, the storage is not read
   * @returns an empty map if none of them is active, undefined if there is none
   */
  find(path: string, method: string): MaybePromise<ReadonlyMap<string, ServedWebhook> | undefined>;
}

interface Found {
  readonly webhook: Webhook;
  readonly loaded: LoadedEnsemble;
}

interface WebhooksDependencies {
  readonly catalog: Catalog;
  readonly storage: Storage;
  readonly clock: SteadyClock;
  readonly logger: Logger;
  readonly starting: () => ExecutionService;
  readonly executions: Executions;
}

/** The webhooks, and the claims by which stored definitions get theirs. */
export function createWebhookParts(
  options: Pick<ConnectedOptions, 'brand' | 'http'>,
  dependencies: WebhooksDependencies,
): {
  readonly webhooks: ServedWebhooks;
  readonly claims: WebhookClaims;
} {
  const { catalog, storage, clock } = dependencies;
  const inCode = webhooksInCode(catalog);
  warnOfSharedSecrets(catalog, dependencies.logger);
  const ownerInCode = (method: string, path: string) => inCode.get(path)?.get(method)?.loaded.compiled.name;
  const claims = createWebhookClaims(storage.documents, catalog.stored.ensemble, ownerInCode, clock);
  return { claims, webhooks: createWebhooks(options, dependencies, inCode, claims) };
}

function createWebhooks(
  { brand = DEFAULT_BRAND, http }: Pick<ConnectedOptions, 'brand' | 'http'>,
  { catalog, storage, clock, logger, starting, executions }: WebhooksDependencies,
  inCode: ReadonlyMap<string, ReadonlyMap<string, Found>>,
  claims: WebhookClaims,
): ServedWebhooks {
  // Few webhooks need the package that checks tokens, and importing it takes long.
  const jwtCheck = once(async () => (await import('./check-jwt.ts')).createJwtCheck(http, clock.wall, logger));
  const served = new Map([...inCode].map(([path, methods]) => [path, toServed(methods)]));

  function toServed(methods: ReadonlyMap<string, Found>): ReadonlyMap<string, ServedWebhook> {
    return new Map([...methods].map(([method, found]) => [method, serve(found)]));
  }

  function serve({ webhook, loaded }: Found): ServedWebhook {
    const { access, isAsync, maxBodyBytes, accept, path, delivery } = webhook;
    const { name, requestReads } = loaded.compiled;
    const isCode = loaded.expects === undefined;
    const find = () => (isCode ? loaded : findAgain(name, webhook));
    return {
      ...{ isPublic: access.type === 'public', isAsync, maxBodyBytes, accept },
      challenge: CHALLENGES[access.type],
      credentialHeaders: access.type === 'signature' ? signatureHeaders(access.scheme, brand) : [],
      async check(request, readBody) {
        if (access.type === 'public') return {};
        if (access.type === 'oauth') return (await jwtCheck())(access, request.header('authorization'));
        if (access.type !== 'signature') return checkCredentials(access, request.header('authorization'));
        const claim = readSignature(access, request, clock.wall.now());
        return 'problem' in claim ? claim : checkSignature(access, claim, await readBody());
      },
      async receive(request) {
        const { method, identity, chain, input } = request;
        const start = (more: ExecuteOptions) => {
          const reads = new Set([...requestReads, ...(loaded.traffic?.requestReads ?? [])]);
          const kept = keepRequest(reads, request, clock.now());
          const trigger = { type: 'webhook', method, path } as const;
          return starting().start(
            find,
            input,
            { events: false, ...chain, ...more },
            { trigger, steps: kept ? [kept] : [] },
          );
        };
        // Without a body, the query is what the execution gets.
        const asked = method === 'GET' || method === 'HEAD' ? JSON.stringify(request.query()) : '';
        const key = identity === undefined ? undefined : hashText(`${path} ${name} ${identity} ${asked}`);
        if (!delivery) return start(key === undefined ? {} : { idempotencyKey: key, idempotencyScope: 'webhook' });
        const readable = { body: input, query: request.query(), headers: request.headers() };
        const found = delivery.findTarget(readable, clock.now());
        const signals = { clock, documents: storage.documents, executions };
        const { handleOf } = starting();
        const what = { ensemble: name, webhook, delivery, found, payload: input };
        return deliverSignal({ ...what, key, start, handleOf }, signals);
      },
    };
  }

  /** The definition for a start that came after a change. The sender was checked against the definition before the change. */
  async function findAgain(name: string, checked: Webhook): Promise<LoadedEnsemble> {
    const loaded = await catalog.findNewest(name);
    if (loaded.compiled.webhooks.some((one) => equalJson(toJson(one), toJson(checked)))) return loaded;
    const message = 'the webhook was changed while it was called; call it again';
    throw new OrchestratorError('CONFLICT', message, { retryable: true });
  }

  async function findStored(path: string): Promise<ReadonlyMap<string, ServedWebhook> | undefined> {
    const methods = new Map<string, Found>();
    const current = new Map<string, LoadedEnsemble | undefined>();
    const owners = await claims.owners(path);
    if (owners.size === 0) return served.get(path);
    for (const [method, name] of owners) {
      if (!current.has(name)) current.set(name, await findCurrent(name));
      const loaded = current.get(name);
      const webhook = loaded?.compiled.webhooks.find((one) => one.path === path && one.methods.includes(method));
      if (loaded && webhook) methods.set(method, { webhook, loaded });
    }
    for (const [method, found] of inCode.get(path) ?? []) methods.set(method, found);
    return toServed(methods);
  }

  /** The definition as it is stored now: a change of its secrets counts for the next request, in every process. */
  async function findCurrent(name: string): Promise<LoadedEnsemble | undefined> {
    const item = await catalog.stored.ensemble.read(name);
    if (!item?.active) return undefined;
    const loaded = await catalog.findNewest(name);
    if (loaded.expects?.tag === item.tag) return loaded;
    catalog.forget('ensemble', name);
    return catalog.findNewest(name);
  }

  return {
    async list() {
      const stored = await catalog.stored.ensemble.listAll();
      const items = [...catalog.code.ensemble.values()].flatMap(({ compiled }) =>
        compiled.webhooks.map((webhook) => toItem(webhook, compiled.name, 'code', true)),
      );
      for (const { name, active } of stored) {
        if (catalog.code.ensemble.has(name) || !active) continue;
        try {
          const { compiled } = await catalog.findNewest(name);
          items.push(...compiled.webhooks.map((webhook) => toItem(webhook, name, 'store', active)));
        } catch (err) {
          logger.warn({ err, ensemble: name }, 'the webhooks of a stored ensemble can not be served');
        }
      }
      return items.sort((a, b) => (a.path < b.path ? -1 : 1));
    },
    find(given, method) {
      const path = canonicalWebhookPath(given);
      if (path === undefined) return undefined;
      const found = served.get(path);
      return found?.has(method) || !path.startsWith(WEBHOOK_ROOT) ? found : findStored(path).catch(hide);
    },
  };
}

/** What is wrong with a stored definition, or with the storage, is not for the sender. @throws INTERNAL, OVERLOADED, NOT_FOUND */
function hide(cause: unknown): never {
  if (isOrchestratorError(cause, 'OVERLOADED') || isOrchestratorError(cause, 'NOT_FOUND')) throw cause;
  throw new OrchestratorError('INTERNAL', 'the webhook can not be served', { cause });
}

const CHALLENGES: Readonly<Record<Webhook['access']['type'], string | undefined>> = {
  public: undefined,
  bearer: 'Bearer',
  oauth: 'Bearer',
  basic: 'Basic realm="webhook", charset="UTF-8"',
  signature: undefined,
};

function warnOfSharedSecrets({ code }: Catalog, logger: Logger): void {
  const webhooks = [...code.ensemble.values()].flatMap(({ compiled }) => compiled.webhooks);
  for (const [{ path }, other] of sharedSecrets(webhooks))
    logger.warn(
      { webhook: path, other },
      'two webhooks have one secret, so each accepts the signed requests of the other',
    );
}

function webhooksInCode({ code }: Catalog): Map<string, Map<string, Found>> {
  const byPath = new Map<string, Map<string, Found>>();
  for (const loaded of code.ensemble.values()) {
    for (const webhook of loaded.compiled.webhooks) {
      const methods = byPath.get(webhook.path) ?? new Map<string, Found>();
      for (const method of webhook.methods) methods.set(method, { webhook, loaded });
      byPath.set(webhook.path, methods);
    }
  }
  return byPath;
}

function toItem(
  { path, methods, access, isAsync, delivery }: Webhook,
  ensemble: string,
  source: WebhookItem['source'],
  active: boolean,
): WebhookItem {
  const scheme = access.type === 'signature' ? { scheme: access.scheme } : {};
  const signal = delivery ? { signal: delivery.signal } : {};
  return { path, methods, ensemble, auth: access.type, ...scheme, async: isAsync, ...signal, source, active };
}

function toJson(webhook: Webhook): Json {
  return JSON.parse(JSON.stringify(webhook)) as Json;
}
