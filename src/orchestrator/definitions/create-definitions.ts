/** Creates, changes and deletes the ensembles or the agents of an orchestrator. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import { readNote } from '../../engine/component/component-fields.ts';
import {
  findVersion,
  labelProblem,
  noSuchVersion,
  type StoredVersion,
} from '../../engine/ensemble/definition-version.ts';
import type { AgentDefinition, WebhookTrigger } from '../../engine/ensemble/ensemble.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type { ChangeOptions } from '../changes.ts';
import type { WebhookClaims } from '../webhooks/webhook-claims.ts';
import { AGENT_CHANGED, type Catalog, type NewDefinition, type VersionNotes, versionsOf } from './catalog.ts';
import { createStoredChange } from './change-definition.ts';
import type { DefinitionItem, Definitions, Page, VersionOptions, WriteOptions } from './definitions.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import type { Kind, StoredItem } from './stored-definitions.ts';
import { refuseWebhooks, webhooksOf } from './webhooks-of.ts';

export function createDefinitions<Key extends string, Item extends DefinitionItem<object>>(
  kind: Kind,
  key: Key,
  catalog: Catalog,
  clock: Clock,
  claims?: WebhookClaims,
  /** A definition was deleted. */
  removed?: (name: string) => Promise<void>,
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

  const { readStored, refuseCode, change } = createStoredChange(kind, catalog);

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
    // A text with other comments is the same version.
    const label = versionsOf(item).find((one) => one.version === version && one.label !== undefined)?.label;
    const about = { version, ...(label !== undefined && { label }), active, createdAt, updatedAt };
    return toItem(name, definition, { ...about, source: 'store' });
  };

  return {
    async create(given, options = {}) {
      refuseUnknownKeys(options, ['webhooks', ...VERSION_KEYS], `${key}.create`);
      const notes = readNotes(options);
      const made = await catalog.compile(kind, given);
      const name = made.definition.name as string;
      const taken = new OrchestratorError(
        'CONFLICT',
        `there is already an ${kind} \`${name}\`; update it, or choose another name`,
      );
      refuseWebhooks(made.definition, options);
      if (code.has(name)) throw taken;
      const written = await withWebhooks(made, [], async () => stored.write(name, 0, await catalog.first(made, notes)));
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
      refuseUnknownKeys(options, ['ifMatch', 'webhooks', ...VERSION_KEYS], `${key}.update`);
      const notes = readNotes(options);
      refuseCode(name);
      await readStored(name);
      return replace(name, given, options, () => notes);
    },
    versions: async (name) => (await readVersions(name)).versions.map(toShown),
    async version(name, ref) {
      const { item, versions } = await readVersions(name);
      const found = versionIn(name, versions, ref);
      return { ...toShown(found), ...(await contentOf(item, versions, found)) };
    },
    async rollback(name, options) {
      refuseUnknownKeys(options, ['to', 'ifMatch', 'webhooks', 'message', 'actor'], `${key}.rollback`);
      const { to, ...rest } = options;
      const notes = readNotes(rest);
      refuseCode(name);
      const { item, versions } = await readVersions(name);
      const found = versionIn(name, versions, to);
      const { definition, text } = await contentOf(item, versions, found);
      const { label } = found;
      // With other shared agents it is another version, and has no label.
      const notesOf = ({ version }: NewDefinition) =>
        version === found.version && label !== undefined ? { ...notes, label } : notes;
      return replace(name, text ?? definition, rest, notesOf, true);
    },
    async delete(name, options = {}) {
      refuseUnknownKeys(options, ['ifMatch'], `${key}.delete`);
      return change(name, options, async (item) => {
        const { revision, definition } = item;
        if (kind === 'agent') await refuseUsed(name);
        if (!(await stored.remove(name, revision))) return undefined;
        await claims?.release(name, webhooksOf(definition));
        for (const version of versionsOf(item)) await stored.replaced.remove(name, version);
        await removed?.(name);
        return { name, deleted: true } as const;
      });
    },
    activate: async (name, options) => setActive(name, true, options),
    deactivate: async (name, options) => setActive(name, false, options),
  };

  /** @param notesOf - what is said about the version that it makes */
  async function replace(
    name: string,
    given: string | object,
    options: ChangeOptions & WriteOptions,
    notesOf: (made: NewDefinition) => VersionNotes,
    isRollback = false,
  ): Promise<Item> {
    const made = await catalog.compile(kind, given);
    if (made.definition.name !== name) {
      const message = `the definition is named \`${String(made.definition.name)}\`; an update can't rename \`${name}\``;
      throw new OrchestratorError('INVALID_REQUEST', message);
    }
    refuseWebhooks(made.definition, options);
    const agent = made.definition as unknown as AgentDefinition;
    // The definitions that use the agent must be valid with it.
    if (kind === 'agent') await compileUsers(agent);
    const written = await change(name, options, (item) => {
      // A rollback counts for all new executions.
      const before = isRollback ? { ...item, traffic: undefined } : item;
      if (before.traffic && webhooksOf(item.definition).length === 0 && webhooksOf(made.definition).length > 0)
        throw new OrchestratorError(
          'CONFLICT',
          `ensemble \`${name}\` has traffic that was set before it had a webhook: end it with { version: 'latest' }, and set it again afterwards`,
        );
      return withWebhooks(made, webhooksOf(item.definition), () => catalog.replace(kind, before, made, notesOf(made)));
    });
    if (kind === 'agent') await updateUsers(name);
    return storedItem(written);
  }

  async function readVersions(name: string) {
    const inCode = code.get(name);
    if (!inCode) {
      const item = await readStored(name);
      return { item, versions: versionsOf(item) };
    }
    const item = codeItem(name, inCode);
    return { item, versions: [{ version: item.version, createdAt: item.createdAt }] };
  }

  function versionIn(name: string, versions: readonly StoredVersion[], ref: string): StoredVersion {
    const found = findVersion(versions, ref);
    if (found) return found;
    throw noSuchVersion(`${kind} \`${name}\``, String(ref), versions);
  }

  async function contentOf(
    item: Pick<StoredItem, 'name' | 'text'> & { readonly definition: object },
    [newest]: readonly StoredVersion[],
    found: StoredVersion,
  ): Promise<{ readonly definition: Item['definition']; readonly text?: string }> {
    const { name } = item;
    const isNewest = newest?.version === found.version && newest.textHash === found.textHash;
    const content = isNewest ? item : await stored.replaced.read(name, found);
    if (!content)
      throw new OrchestratorError(
        'INTERNAL',
        `the definition of version ${found.version} of ${kind} \`${name}\` is not stored`,
      );
    const { definition, text } = content;
    return { definition, ...(text !== undefined && { text }) };
  }

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
      const { name, definition, text, updatedAt } = item;
      const made = { ...(await catalog.compile(of, definition)), text };
      // If another change came first, it was made with the new agent.
      await catalog.replace(of, item, made, AGENT_CHANGED, updatedAt);
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

function toShown({ textHash: _hash, ...version }: StoredVersion) {
  return version;
}

/** Every listing reads the notes of all versions. */
const MAX_NOTE = 1_000;
const VERSION_KEYS = ['label', 'message', 'commit', 'actor'] as const;

/** @throws INVALID_REQUEST */
function readNotes({ label, message, commit, actor }: VersionOptions): VersionNotes {
  const problem = label === undefined ? undefined : labelProblem(label);
  if (problem !== undefined) throw new OrchestratorError('INVALID_REQUEST', `\`label\` ${problem}`);
  const notes = {
    ...{ label, by: readNote('actor', actor, MAX_NOTE) },
    ...{ message: readNote('message', message, MAX_NOTE), commit: readNote('commit', commit, MAX_NOTE) },
  };
  return withoutUndefined(notes);
}
