/** The definitions that were created at run time, as documents of the storage. */

import { hashJson } from '../../engine/base/bytes/hash.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { StoredVersion } from '../../engine/ensemble/definition-version.ts';
import type { Traffic } from '../../engine/ensemble/traffic.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DocumentStore, StoredDocument } from '../../engine/storage/storage.port.ts';

import { allDocuments } from '../all-documents.ts';

export type Kind = 'ensemble' | 'agent';

/** What is stored of a definition. */
export interface DefinitionContent {
  readonly definition: JsonObject;
  /** The hash of the definition together with the shared agents that it uses. */
  readonly version: string;
  readonly active: boolean;
  readonly createdAt: number;
  /** The stored agents that it uses, with the hash of each: a change of one of them changes the tag of this definition. */
  readonly agents: Readonly<Record<string, string>>;
  /** The text that was given. Absent for an object. */
  readonly text?: string | undefined;
  /** The newest first. Absent for a definition that has not changed since versions are kept. */
  readonly versions?: readonly StoredVersion[] | undefined;
  /** Of an ensemble: which versions new executions run. Absent: the newest. */
  readonly traffic?: Traffic | undefined;
}

/** A definition that another one has replaced. */
export type ReplacedDefinition = Pick<DefinitionContent, 'definition' | 'text'>;

type KeyOfReplaced = Pick<StoredVersion, 'version' | 'textHash'>;

export interface StoredItem extends DefinitionContent {
  readonly name: string;
  readonly updatedAt: number;
  /** Equal in every process for the same content. A start expects it. */
  readonly tag: string;
  /** The version of the document. */
  readonly revision: number;
}

export interface StoredDefinitions {
  read(name: string): Promise<StoredItem | undefined>;
  /** In the order of their names. */
  list(page: { readonly limit: number; readonly after?: string | undefined }): Promise<readonly StoredItem[]>;
  listAll(): Promise<readonly StoredItem[]>;
  /** @param revision - the expected one; 0 for a new definition @returns undefined if another change came first */
  write(
    name: string,
    revision: number,
    content: DefinitionContent,
    updatedAt?: number,
  ): Promise<StoredItem | undefined>;
  /** @returns false if another change came first */
  remove(name: string, revision: number): Promise<boolean>;
  /** What the earlier versions of a name were, by their hash. */
  readonly replaced: {
    read(name: string, version: KeyOfReplaced): Promise<ReplacedDefinition | undefined>;
    /** Keeps one, unless it is kept already. */
    keep(name: string, version: KeyOfReplaced, definition: ReplacedDefinition): Promise<void>;
    remove(name: string, version: KeyOfReplaced): Promise<void>;
  };
}

function tagOf({ definition, active, agents, traffic }: DefinitionContent): string {
  const runs = { definition, agents, ...(traffic && { traffic: traffic as unknown as JsonObject }) };
  return `${hashJson(runs)}${active ? '' : '-inactive'}`;
}

export function storedDefinitions(store: DocumentStore, kind: Kind, clock: Clock): StoredDefinitions {
  const replacedKind = `${kind}-version`;
  const replacedName = (name: string, { version, textHash }: KeyOfReplaced) => `${name}@${version}@${textHash ?? ''}`;
  const list: StoredDefinitions['list'] = async ({ limit, after }) => {
    const page = { limit, now: clock.now(), ...(after !== undefined && { after }) };
    return (await store.list(kind, page)).map(toItem);
  };
  return {
    async read(name) {
      const found = await store.read(kind, name, clock.now());
      return found && toItem(found);
    },
    list,
    listAll: async () => (await allDocuments(store, kind, clock)).map(toItem),
    async write(name, revision, content, updatedAt = clock.now()) {
      const tag = tagOf(content);
      const document = { value: content as unknown as JsonObject, tag, updatedAt };
      const isStored = await store.write(kind, name, { expectedVersion: revision, document, now: clock.now() });
      return isStored ? { ...content, name, tag, updatedAt, revision: revision + 1 } : undefined;
    },
    remove: async (name, revision) => store.write(kind, name, { expectedVersion: revision, now: clock.now() }),
    replaced: {
      async read(name, version) {
        const found = await store.read(replacedKind, replacedName(name, version), clock.now());
        return found && (found.value as unknown as ReplacedDefinition);
      },
      async keep(name, version, { definition, text }) {
        const value = { definition, ...(text !== undefined && { text }) };
        const now = clock.now();
        const document = { value, tag: version.version, updatedAt: now };
        await store.write(replacedKind, replacedName(name, version), { expectedVersion: 0, document, now });
      },
      async remove(name, version) {
        const key = replacedName(name, version);
        const now = clock.now();
        const found = await store.read(replacedKind, key, now);
        if (found) await store.write(replacedKind, key, { expectedVersion: found.version, now });
      },
    },
  };
}

function toItem({ name, tag, version: revision, updatedAt, value }: StoredDocument): StoredItem {
  return { ...(value as unknown as DefinitionContent), name, tag, updatedAt, revision };
}
