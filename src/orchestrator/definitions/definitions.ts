/** The ensembles and the agents of an orchestrator, as the public `orchestrator.ensembles` and `orchestrator.agents`. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type {
  AgentDefinition,
  EnsembleDefinition,
  TriggerDefinition,
  WebhookTrigger,
} from '../../engine/ensemble/ensemble.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { alwaysChanged, type ChangeOptions, refuseOtherVersion } from '../changes.ts';
import type { WebhookClaims } from '../webhooks/webhook-claims.ts';
import { type Catalog, type NewDefinition, notFound } from './catalog.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import type { Kind, StoredItem } from './stored-definitions.ts';

/** A definition with what is known about it. */
export interface DefinitionItem<Definition> {
  readonly name: string;
  readonly description?: string;
  /** The hash of the definition, together with the shared agents that it uses. */
  readonly version: string;
  /** Whether it can be started. A definition in code always can. */
  readonly active: boolean;
  /** `code`: passed to `createOrchestrator`, and fixed at run time. `store`: created at run time, and kept in the storage. */
  readonly source: 'code' | 'store';
  /** Unix ms. For a definition in code: when this process first used it. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly definition: Definition;
}

export type EnsembleItem = DefinitionItem<EnsembleDefinition>;
export type AgentItem = DefinitionItem<AgentDefinition>;

export interface WriteOptions {
  /** Whether the definition may have webhooks, by which others start it. If not, one that has is FORBIDDEN. Default true. */
  readonly webhooks?: boolean | undefined;
}

export interface ListOptions {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Only active definitions, or only those that are not. */
  readonly active?: boolean | undefined;
}

/** One page of a listing. */
export type Page<Key extends string, Item> = { readonly [K in Key]: readonly Item[] } & {
  readonly nextCursor?: string;
};

/**
 * Definitions that can be created, changed and deleted at run time. A change counts in every process that uses the storage, from
 * the next start on. Executions that have begun keep the definition with which they began.
 */
export interface Definitions<Key extends string, Item> {
  /**
   * Stores a definition: YAML text, or an object of the same shape.
   * @throws INVALID_DEFINITION; NOT_CONFIGURED; CONFLICT if the name is taken; FORBIDDEN as {@link WriteOptions} says
   */
  create(definition: string | object, options?: WriteOptions): Promise<Item>;
  /** @throws NOT_FOUND */
  get(name: string): Promise<Item>;
  /** In the order of their names. @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit */
  list(page?: ListOptions): Promise<Page<Key, Item>>;
  /**
   * Replaces a definition. `ifMatch` is the version that it must have.
   * @throws NOT_FOUND; INVALID_DEFINITION; NOT_CONFIGURED; CONFLICT for a definition in code, and for another version; FORBIDDEN as
   *   {@link WriteOptions} says
   */
  update(name: string, definition: string | object, options?: ChangeOptions & WriteOptions): Promise<Item>;
  /** @throws NOT_FOUND; CONFLICT for a definition in code, for another version, and for an agent that a definition uses */
  delete(name: string, options?: ChangeOptions): Promise<{ readonly name: string; readonly deleted: true }>;
  /** Lets it be started again. @throws NOT_FOUND; CONFLICT for a definition in code, and for another version */
  activate(name: string, options?: ChangeOptions): Promise<Item>;
  /** From now on, starts are refused with NOT_ACTIVE. Executions that have begun continue. @throws as `activate` */
  deactivate(name: string, options?: ChangeOptions): Promise<Item>;
}

export type Ensembles = Definitions<'ensembles', EnsembleItem>;
export type Agents = Definitions<'agents', AgentItem>;

/** The scope of those who may start ensembles. */
const STARTS = 'execute:ensembles';

/** @throws FORBIDDEN */
function refuseWebhooks({ definition }: { readonly definition: JsonObject }, { webhooks = true }: WriteOptions): void {
  if (webhooks || webhooksOf(definition).length === 0) return;
  const message = `a definition with a webhook is started by callers that need no token; to store it, the token needs the scope \`${STARTS}\` too`;
  throw new OrchestratorError('FORBIDDEN', message, { details: { requiredScope: STARTS } });
}

/** How often a change without `ifMatch` is made again because another change came first. */
const MAX_TRIES = 20;

export function createDefinitions<Key extends string, Item extends DefinitionItem<object>>(
  kind: Kind,
  key: Key,
  catalog: Catalog,
  clock: Clock,
  claims?: WebhookClaims,
): Definitions<Key, Item> {
  const code = catalog.code[kind];
  const stored = catalog.stored[kind];
  // Read at the first use: a Worker has no clock while its module loads.
  let since: number | undefined;

  const codeItem = (name: string, { compiled }: LoadedEnsemble): Item => {
    since ??= clock.now();
    const definition = kind === 'agent' ? compiled.definition.agents?.[0] : compiled.stored.definition;
    const about = {
      version: compiled.stored.version,
      active: true,
      source: 'code',
      createdAt: since,
      updatedAt: since,
    };
    return toItem(name, structuredClone(definition) as object, about);
  };

  const readStored = async (name: string): Promise<StoredItem> => {
    const item = NAME_PATTERN.test(name) ? await stored.read(name) : undefined;
    if (item) return item;
    throw notFound(kind, name, code.keys());
  };

  const refuseCode = (name: string) => {
    if (!code.has(name)) return;
    const message = `${kind} \`${name}\` is defined in code, and can only be changed there`;
    throw new OrchestratorError('CONFLICT', message);
  };

  /** Reads the item and changes it, again if another change came first. */
  const change = async <T>(
    name: string,
    options: ChangeOptions,
    make: (item: StoredItem) => Promise<T | undefined>,
  ): Promise<T> => {
    refuseCode(name);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const item = await readStored(name);
      refuseOtherVersion(`${kind} \`${name}\``, options, item.version);
      const made = await make(item);
      if (made === undefined) continue;
      catalog.forget(kind, name);
      return made;
    }
    throw alwaysChanged(`${kind} \`${name}\``);
  };

  const setActive = (name: string, active: boolean, options: ChangeOptions = {}) => {
    refuseUnknownKeys(options, ['ifMatch'], `${key}.${active ? 'activate' : 'deactivate'}`);
    return change(name, options, async (item) => {
      if (item.active === active) return storedItem(item);
      const { name: _name, tag: _tag, revision, updatedAt: _updatedAt, ...content } = item;
      const written = await stored.write(name, revision, { ...content, active });
      return written && storedItem(written);
    });
  };

  const storedItem = (item: StoredItem): Item => {
    const { name, definition, version, active, createdAt, updatedAt } = item;
    return toItem(name, definition, { version, active, source: 'store', createdAt, updatedAt });
  };

  return {
    async create(given, options = {}) {
      refuseUnknownKeys(options, ['webhooks'], `${key}.create`);
      const made = await catalog.compile(kind, given);
      const name = made.definition.name as string;
      const taken = new OrchestratorError(
        'CONFLICT',
        `there is already an ${kind} \`${name}\`; update it, or choose another name`,
      );
      refuseWebhooks(made, options);
      if (code.has(name)) throw taken;
      const written = await withWebhooks(made, [], () =>
        stored.write(name, 0, { ...contentOf(made), active: true, createdAt: clock.now() }),
      );
      if (!written) throw taken;
      catalog.forget(kind, name);
      return storedItem(written);
    },
    async get(name) {
      const inCode = code.get(name);
      return inCode ? codeItem(name, inCode) : storedItem(await readStored(name));
    },
    async list(given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor', 'active'], `${key}.list`);
      const { limit, cursor, active } = given;
      const size = pageLimit(limit);
      const filter = `${key} ${active ?? ''}`;
      const after = cursor === undefined ? undefined : decodeCursor(cursor, filter, NAME_PATTERN);
      const items = await listAfter(after, size + 1, active);
      const page = items.slice(0, size);
      const last = page.at(-1);
      const next = items.length > size && last ? { nextCursor: encodeCursor(last.name, filter) } : {};
      return { [key]: page, ...next } as Page<Key, Item>;
    },
    async update(name, given, options = {}) {
      refuseUnknownKeys(options, ['ifMatch', 'webhooks'], `${key}.update`);
      refuseCode(name);
      await readStored(name);
      const made = await catalog.compile(kind, given);
      if (made.definition.name !== name) {
        const message = `the definition is named \`${String(made.definition.name)}\`; an update can't rename \`${name}\``;
        throw new OrchestratorError('INVALID_REQUEST', message);
      }
      refuseWebhooks(made, options);
      const agent = made.definition as unknown as AgentDefinition;
      // The definitions that use the agent must be valid with it.
      if (kind === 'agent') await compileUsers(agent);
      const written = await change(name, options, ({ revision, active, createdAt, definition }) =>
        withWebhooks(made, webhooksOf(definition), () =>
          stored.write(name, revision, { ...contentOf(made), active, createdAt }),
        ),
      );
      if (kind === 'agent') await updateUsers(name);
      return storedItem(written);
    },
    async delete(name, options = {}) {
      refuseUnknownKeys(options, ['ifMatch'], `${key}.delete`);
      return change(name, options, async ({ revision, definition }) => {
        if (kind === 'agent') await refuseUsed(name);
        if (!(await stored.remove(name, revision))) return undefined;
        await claims?.release(name, webhooksOf(definition));
        return { name, deleted: true } as const;
      });
    },
    activate: async (name, options) => setActive(name, true, options),
    deactivate: async (name, options) => setActive(name, false, options),
  };

  /** The definitions of code and storage together, in the order of their names. Those of code hide stored ones of the same name. */
  async function listAfter(after: string | undefined, count: number, active: boolean | undefined): Promise<Item[]> {
    const found: Item[] = [];
    if (active !== false) {
      const names = [...code.keys()].sort().filter((name) => after === undefined || name > after);
      for (const name of names.slice(0, count)) found.push(codeItem(name, code.get(name) as LoadedEnsemble));
    }
    let from = after;
    for (let kept = 0; kept < count; ) {
      const page = await stored.list({ limit: count, after: from });
      for (const item of page) {
        if (code.has(item.name) || (active !== undefined && item.active !== active)) continue;
        found.push(storedItem(item));
        kept += 1;
      }
      from = page.at(-1)?.name;
      if (page.length < count) break;
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, count);
  }

  /** Writes a definition that has the webhooks it claims, and gives back those of the definition before it. */
  async function withWebhooks<T>(
    { definition }: NewDefinition,
    before: readonly WebhookTrigger[],
    write: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const after = webhooksOf(definition);
    if (!claims || (after.length === 0 && before.length === 0)) return write();
    const name = definition.name as string;
    await claims.claim(name, after);
    const written = await write();
    if (written !== undefined) await claims.claim(name, after);
    await claims.release(name, written === undefined ? after : before);
    return written;
  }

  async function compileUsers(agent: AgentDefinition): Promise<void> {
    for (const { kind: of, item } of await catalog.usersOf(agent.name)) {
      try {
        await catalog.compile(of, item.definition, agent);
      } catch (cause) {
        const message = `${of} \`${item.name}\` uses agent \`${agent.name}\`, and would not be valid with it: ${(cause as Error).message}`;
        throw new OrchestratorError('CONFLICT', message, { cause });
      }
    }
  }

  /** After a change of an agent. A process that ends in between leaves the rest to the next one that loads a definition. */
  async function updateUsers(agent: string): Promise<void> {
    for (const { kind: of, item } of await catalog.usersOf(agent)) {
      const { name, definition, active, createdAt, updatedAt, revision } = item;
      const content = { ...contentOf(await catalog.compile(of, definition)), active, createdAt };
      // If another change came first, it was made with the new agent.
      await catalog.stored[of].write(name, revision, content, updatedAt);
      catalog.forget(of, name);
    }
  }

  async function refuseUsed(agent: string): Promise<void> {
    const users = (await catalog.usersOf(agent)).map(({ kind: of, item }) => `${of} \`${item.name}\``);
    if (users.length === 0) return;
    const more = users.length > 3 ? ` and ${users.length - 3} more` : '';
    const message = `agent \`${agent}\` is used by ${users.slice(0, 3).join(', ')}${more}; change them first`;
    throw new OrchestratorError('CONFLICT', message);
  }

  function toItem(
    name: string,
    definition: object,
    about: Omit<DefinitionItem<object>, 'name' | 'description' | 'definition'> | object,
  ): Item {
    const { description } = definition as { readonly description?: string };
    return { name, ...(description !== undefined && { description }), ...about, definition } as unknown as Item;
  }
}

function webhooksOf({ trigger = [] }: JsonObject): readonly WebhookTrigger[] {
  return (trigger as unknown as readonly TriggerDefinition[]).filter((one) => one.type === 'webhook');
}

function contentOf({ definition, version, agents }: NewDefinition) {
  return { definition, version, agents };
}
