/**
 * The definitions that an orchestrator knows: those that code passed to it, and those that were created at run time. The first are
 * fixed. The others are kept in the storage, and each process compiles one when it first needs it. A start names the tag of the
 * definition that it runs, and the storage refuses it if that is not the stored one any more: then the definition is loaded again.
 * So a change counts in every process at once, and no start reads the storage.
 */

import type { EnsembleSource } from '../../authoring/define.ts';
import { hashJson, hashText } from '../../engine/base/bytes/hash.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { CompileHost } from '../../engine/definition/compile/triggers/compile-host.ts';
import { parseAgent } from '../../engine/definition/read/parse-ensemble.ts';
import {
  addVersion,
  findVersion,
  isHash,
  noSuchVersion,
  type StoredVersion,
} from '../../engine/ensemble/definition-version.ts';
import type { AgentDefinition } from '../../engine/ensemble/ensemble.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import { namedIn, type Traffic } from '../../engine/ensemble/traffic.ts';
import type { FlowLimit } from '../../engine/execution/limits/flow-limit.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { createReadSplitKey } from '../components/split-key.ts';
import { loadTraffic, type TrafficLoader } from '../traffic/load-traffic.ts';
import {
  type LoadedEnsemble,
  loadNewEnsemble,
  loadSharedAgent,
  loadStoredEnsemble,
  logWarnings,
} from './load-definitions.ts';
import {
  type DefinitionContent,
  type Kind,
  type StoredDefinitions,
  type StoredItem,
  storedDefinitions,
} from './stored-definitions.ts';

/** A definition that can be stored: its content, and the form that runs. */
export interface NewDefinition extends Pick<DefinitionContent, 'definition' | 'version' | 'agents' | 'text'> {
  /** Undefined for an agent that only chooses a route: it can't run alone. */
  readonly loaded: LoadedEnsemble | undefined;
}

export interface Catalog {
  /** The ensemble or agent that runs under a name. @throws NOT_FOUND, NOT_ACTIVE, NOT_CONFIGURED if this process lacks what it needs */
  find(kind: Kind, name: string): MaybePromise<LoadedEnsemble>;
  /** The ensemble with its newest definition. @throws as `find`, also if only other versions can run in this process */
  findNewest(name: string): Promise<LoadedEnsemble>;
  /** Forgets what was loaded: the next `find` reads the storage. */
  forget(kind: Kind, name: string): void;
  /** Whether an ensemble has this name, in code or in the storage. */
  hasEnsemble(name: string): MaybePromise<boolean>;
  /** Compiles a definition. @param replaced - a stored agent, as it will be @throws INVALID_DEFINITION, NOT_CONFIGURED */
  compile(kind: Kind, definition: string | object, replaced?: AgentDefinition): Promise<NewDefinition>;
  /** The definitions that use a stored agent. */
  usersOf(agent: string): Promise<readonly { readonly kind: Kind; readonly item: StoredItem }[]>;
  /**
   * Replaces a stored definition, and adds a version to those of its name.
   * @returns undefined if another change came first @throws CONFLICT for a label that another version has
   */
  replace(
    kind: Kind,
    item: StoredItem,
    made: NewDefinition,
    notes: VersionNotes,
    updatedAt?: number,
  ): Promise<StoredItem | undefined>;
  /** The first version of a new definition. */
  first(made: NewDefinition, notes: VersionNotes): Promise<DefinitionContent>;
  /** @throws NOT_CONFIGURED if this process can't run one of the versions of a traffic */
  checkTraffic(item: StoredItem, traffic: Traffic): Promise<void>;
  /** The hash that `ref` names: a label of a stored ensemble, or a hash. @throws VERSION_NOT_FOUND */
  hashOf(ensemble: string, ref: string): MaybePromise<string>;
  /** The definitions in code. */
  readonly code: Readonly<Record<Kind, ReadonlyMap<string, LoadedEnsemble>>>;
  readonly stored: Readonly<Record<Kind, StoredDefinitions>>;
}

/** What is said about a version. */
export type VersionNotes = Omit<StoredVersion, 'version' | 'createdAt' | 'textHash'>;

/** How many compiled definitions are kept. The one that was used least recently is compiled again. */
const MAX_LOADED = 1_000;

export function createCatalog(dependencies: {
  readonly host: CompileHost;
  /** The ensembles in code. */
  readonly ensembles: ReadonlyMap<string, LoadedEnsemble>;
  readonly storage: Pick<Storage, 'documents' | 'definitions'>;
  /** The numbers of the limits of a definition that was replaced. */
  putLimits(limits: readonly FlowLimit[]): Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}): Catalog {
  const { host, ensembles, storage, clock, logger } = dependencies;
  const { documents, definitions } = storage;
  const agents = new Map<string, LoadedEnsemble>();
  for (const [name, agent] of host.sharedAgents) if (!agent.routes) agents.set(name, loadSharedAgent(agent, host));
  const code = { ensemble: ensembles, agent: agents };
  const stored = {
    ensemble: storedDefinitions(documents, 'ensemble', clock),
    agent: storedDefinitions(documents, 'agent', clock),
  };
  const loaded: Record<Kind, Map<string, LoadedEnsemble>> = { ensemble: new Map(), agent: new Map() };
  const loading = new Map<string, Promise<LoadedEnsemble>>();

  const hasEnsemble = (name: string): MaybePromise<boolean> =>
    code.ensemble.has(name) || stored.ensemble.read(name).then((item) => item !== undefined);

  /** The shared agents of code and storage. Those of code win. */
  const agentsWith = async (replaced?: AgentDefinition) => {
    const items = await stored.agent.listAll();
    const own = new Map(items.map(({ name, definition }) => [name, definition as unknown as AgentDefinition]));
    if (replaced) own.set(replaced.name, replaced);
    for (const name of host.sharedAgents.keys()) own.delete(name);
    return { host: { ...host, readAt: undefined, sharedAgents: new Map([...own, ...host.sharedAgents]) }, own };
  };

  const compile: Catalog['compile'] = async (kind, source, replaced) => {
    const shared = await agentsWith(replaced);
    const made =
      kind === 'ensemble'
        ? await compileEnsembleSource(source, shared.host, hasEnsemble)
        : compileAgentSource(source, shared.host);
    const { used, ...rest } = made;
    const agents = Object.fromEntries(
      used.flatMap((name) => {
        const agent = shared.own.get(name);
        return agent ? [[name, hashJson(agent as unknown as Json)]] : [];
      }),
    );
    return { ...rest, agents, text: typeof source === 'string' ? source : undefined };
  };

  const first: Catalog['first'] = async (made, notes) => {
    const { loaded: stored, ...content } = made;
    // What runs this version need not find it in this process.
    if (stored) await definitions.put(stored.compiled.stored);
    const createdAt = clock.now();
    return { ...content, active: true, createdAt, versions: [versionOf(made, notes, createdAt)] };
  };

  const replace: Catalog['replace'] = async (kind, item, made, notes, updatedAt) => {
    const { name, revision, tag: _tag, updatedAt: _updatedAt, ...before } = item;
    const { replaced, write } = stored[kind];
    const known = versionsOf(item);
    const { loaded: compiled, ...content } = made;
    const used = new Set(item.traffic ? namedIn(item.traffic) : []);
    const versions = addVersion(known, versionOf(made, notes, clock.now()), used);
    if (compiled) await definitions.put(compiled.compiled.stored);
    if (versions !== known) await replaced.keep(name, known[0] as StoredVersion, item);
    const written = await write(name, revision, { ...before, ...content, versions }, updatedAt);
    const left = new Set(versions.map(keyOfReplaced));
    if (!written) return written;
    for (const one of known) if (!left.has(keyOfReplaced(one))) await replaced.remove(name, one);
    await dependencies.putLimits(compiled?.compiled.limits?.constant(clock.now()) ?? []);
    return written;
  };

  const trafficLoader: TrafficLoader = {
    read: (version) => definitions.get(version),
    load: ({ definition }) =>
      loadStoredEnsemble(definition as unknown as EnsembleSource, { ...host, readAt: undefined }),
    readKey: createReadSplitKey(host.functions),
  };

  const hashOfLabel = async (ensemble: string, label: string): Promise<string> => {
    const item = code.ensemble.has(ensemble) ? undefined : await stored.ensemble.read(ensemble);
    const versions = item ? versionsOf(item) : [];
    const found = findVersion(versions, label);
    if (found) return found.version;
    throw noSuchVersion(`ensemble \`${ensemble}\``, label, versions);
  };

  const loadItem = async (kind: Kind, item: StoredItem): Promise<LoadedEnsemble> => {
    const made = await compile(kind, item.definition);
    if (!made.loaded) throw notFound(kind, item.name, code[kind].keys());
    const { name, tag } = await withCurrentAgents(kind, item, made);
    return { ...made.loaded, expects: { kind, name, tag } };
  };

  const loadWithTraffic = (item: StoredItem, traffic: Traffic): Promise<LoadedEnsemble> => {
    const { name, version, tag } = item;
    const expects = { kind: 'ensemble', name, tag };
    return loadTraffic({ name, traffic, version, expects, load: () => loadItem('ensemble', item) }, trafficLoader);
  };

  const load = async (kind: Kind, name: string): Promise<LoadedEnsemble> => {
    const item = NAME_PATTERN.test(name) ? await stored[kind].read(name) : undefined;
    if (!item) throw notFound(kind, name, code[kind].keys());
    if (!item.active) throw new OrchestratorError('NOT_ACTIVE', `${kind} \`${name}\` is not active; activate it first`);
    const found = item.traffic ? await loadWithTraffic(item, item.traffic) : await loadItem(kind, item);
    logWarnings([found], logger);
    // What is missing may be created later.
    if (found.traffic?.lacks || found.traffic?.lacksNewest) return found;
    loaded[kind].set(name, found);
    const [oldest] = loaded[kind].keys();
    if (loaded[kind].size > MAX_LOADED && oldest !== undefined) loaded[kind].delete(oldest);
    return found;
  };

  /**
   * A change of an agent is written before the definitions that use it. If the process that changed it ended in between, the next
   * process that loads a definition completes the change.
   */
  const withCurrentAgents = async (kind: Kind, item: StoredItem, made: NewDefinition): Promise<StoredItem> => {
    const isCurrent =
      Object.keys(made.agents).length === Object.keys(item.agents).length &&
      Object.entries(made.agents).every(([agent, tag]) => item.agents[agent] === tag);
    if (isCurrent) return item;
    const written = await replace(kind, item, { ...made, text: item.text }, AGENT_CHANGED, item.updatedAt);
    // Another process has changed it: the start that uses this tag is refused, and loads it again.
    return written ?? item;
  };

  const find: Catalog['find'] = (kind, name) => {
    const known = code[kind].get(name) ?? loaded[kind].get(name);
    if (known) return known;
    const key = `${kind} ${name}`;
    const found = loading.get(key) ?? load(kind, name).finally(() => loading.delete(key));
    loading.set(key, found);
    return found;
  };

  return {
    code,
    stored,
    compile,
    replace,
    first,
    async checkTraffic(item, traffic) {
      const loaded = await loadWithTraffic(item, traffic);
      if (loaded.traffic?.lacks) throw loaded.traffic.lacks;
    },
    hashOf: (ensemble, ref) => (isHash(ref) ? ref : hashOfLabel(ensemble, ref)),
    hasEnsemble,
    find,
    async findNewest(name) {
      const found = await find('ensemble', name);
      if (found.traffic?.lacksNewest) throw found.traffic.lacksNewest;
      return found;
    },
    forget(kind, name) {
      loaded[kind].delete(name);
    },
    async usersOf(agent) {
      const found: { kind: Kind; item: StoredItem }[] = [];
      for (const kind of ['agent', 'ensemble'] as const) {
        for (const item of await stored[kind].listAll())
          if (Object.hasOwn(item.agents, agent)) found.push({ kind, item });
      }
      return found;
    },
  };
}

/** The versions of a stored definition, the newest first. */
export function versionsOf({ versions, version, text, updatedAt }: StoredItem): readonly StoredVersion[] {
  return versions ?? [versionOf({ version, text }, {}, updatedAt)];
}

function versionOf(
  { version, text }: Pick<NewDefinition, 'version' | 'text'>,
  notes: VersionNotes,
  createdAt: number,
): StoredVersion {
  return { ...notes, version, createdAt, ...(text !== undefined && { textHash: hashText(text) }) };
}

function keyOfReplaced({ version, textHash }: StoredVersion): string {
  return `${version} ${textHash}`;
}

/** Of the version that a definition gets because a shared agent has changed. */
export const AGENT_CHANGED: VersionNotes = { message: 'a shared agent that it uses was changed' };

export function notFound(kind: Kind, name: string, names: Iterable<string>): OrchestratorError {
  const near = typeof name === 'string' ? suggestName(name, names) : undefined;
  return new OrchestratorError(
    'NOT_FOUND',
    `there is no ${kind} \`${name}\`${near ? `; did you mean \`${near}\`?` : ''}`,
  );
}

interface Compiled extends Omit<NewDefinition, 'agents' | 'text'> {
  /** The names of the shared agents that it uses. */
  readonly used: readonly string[];
}

async function compileEnsembleSource(
  source: string | object,
  host: CompileHost,
  hasEnsemble: (name: string) => MaybePromise<boolean>,
): Promise<Compiled> {
  const loaded = await loadNewEnsemble(source, host, hasEnsemble);
  const { definition, stored } = loaded.compiled;
  const own = new Set(definition.agents?.map(({ name }) => name));
  return {
    definition: toJson(definition),
    version: stored.version,
    loaded,
    used: agentNames(stored.definition).filter((name) => !own.has(name)),
  };
}

function compileAgentSource(source: string | object, host: CompileHost): Compiled {
  const agent = parseAgent(source);
  const definition = toJson(agent);
  // It chooses an agent of the flow that uses it, so it is checked there.
  if (agent.routes) return { definition, version: hashJson(definition), loaded: undefined, used: [] };
  const sharedAgents = new Map([...host.sharedAgents, [agent.name, agent] as const]);
  const loaded = loadSharedAgent(agent, { ...host, sharedAgents });
  const { stored } = loaded.compiled;
  return {
    definition,
    version: stored.version,
    loaded,
    used: agentNames(stored.definition).filter((name) => name !== agent.name),
  };
}

function toJson(definition: object): JsonObject {
  return JSON.parse(JSON.stringify(definition)) as JsonObject;
}

function agentNames(definition: object): readonly string[] {
  const { agents = [] } = definition as { readonly agents?: readonly { readonly name: string }[] };
  return agents.map(({ name }) => name);
}
