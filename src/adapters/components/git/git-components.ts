/**
 * Components in a git repository: `components.yaml` has their kinds, files and metadata, a tag `components/<name>/<version>` is a version, and a
 * tag `components/<name>/<environment>` that moves is a deployment (the specification's Component versions). The command `git` reads and writes
 * the same tags.
 */

import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hashJson } from '../../../engine/base/bytes/hash.ts';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { checkedLater, isText, readOptions, requiredOption, someText } from '../../../engine/base/read-options.ts';
import type { ComponentContent, ComponentVersion, Deployment, Split } from '../../../engine/component/component.ts';
import { compareVersions, environmentProblem, isVersion, MAX_CONTENT } from '../../../engine/component/component.ts';
import type {
  ComponentSource,
  Registration,
  StoredComponent,
} from '../../../engine/component/component-source.port.ts';
import { isRollout } from '../../../engine/component/guard.ts';
import { splitProblem } from '../../../engine/component/split.ts';
import { registrationTag } from '../registration-tag.ts';
import { COMPONENTS_FILE, editComponents, parseComponents } from './components-file.ts';
import { findRepository, type Repository } from './find-repository.ts';
import { createObjects, type GitObjects, loadGit, type Signature, type Tagged } from './objects.ts';
import { createRefs, type Refs } from './refs.ts';
import { formatMessage, parseMessage } from './tag-message.ts';

export interface GitComponentsOptions {
  /** The folder that has `components.yaml`, in a checkout; or a bare repository, which has it at the top of its `HEAD`. */
  readonly path: string;
  /** Who makes commits and tags when a change names nobody. Default: `ensemble-orchestrator`, without an address. */
  readonly author?: { readonly name: string; readonly email?: string };
}

/** A source of components that is a git repository. */
export interface GitComponents extends ComponentSource {
  /** The text of a file of the project in `HEAD`. Undefined: it is not committed. */
  readCommitted(file: string): Promise<string | undefined>;
  /** The folder of the project. Undefined: the repository is bare. */
  folder(): Promise<string | undefined>;
}

const TAGS = 'refs/tags/components/';
const LOCK = 'ensemble-components';
const VERSION_FIELDS = ['createdAt', 'by'];
const DEPLOYMENT_FIELDS = ['version', 'deployedAt', 'by', 'previous', 'earlier', 'split', 'splitBy', 'rollout'];
const EXTENSIONS = { prompt: 'md', template: 'html', config: 'yaml', query: 'sql' };
const FOLDERS = { prompt: 'prompts', template: 'templates', config: 'configs', query: 'queries' };

interface Opened {
  readonly repository: Repository;
  readonly refs: Refs;
  readonly objects: GitObjects;
  /** Reads `components.yaml`, and keeps what the last text was. */
  parse(text: string): ReadonlyMap<string, Registration>;
}

interface TaggedVersion {
  readonly version: ComponentVersion;
  /** The object of its tag. */
  readonly object: string;
  readonly commit: string;
}

/** The tags of a component. */
interface ComponentTags {
  /** The lowest first. */
  readonly versions: readonly TaggedVersion[];
  /** The object of each tag that is not a version. */
  readonly others: ReadonlyMap<string, string>;
}

/**
 * Components in a git repository, for the option `components`. It needs Node.js and the package `isomorphic-git`, and not the command `git`.
 * A moved tag counts within a second. A version that is created here is a commit of its own on top of `HEAD`, unless `HEAD` has its text.
 *
 * @throws TypeError for an option that is unknown or has a wrong type. Each method throws NOT_CONFIGURED without a repository
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { gitComponents } from 'ensemble-orchestrator/git';
 *
 * createOrchestrator({ components: gitComponents({ path: '.' }) });
 * ```
 */
export function gitComponents(options: GitComponentsOptions): GitComponents {
  const { path, author = { name: 'ensemble-orchestrator' } } = readOptions('gitComponents', options, {
    path: requiredOption('the path of a folder', isText),
    author: checkedLater,
  });
  readOptions('gitComponents: author', author, { name: requiredOption('text', isText), email: someText });
  let opened: Promise<Opened> | undefined;
  const open = () => {
    opened ??= openRepository(path).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const sign = (by: string | undefined, at: number): Signature => ({
    name: by ?? author.name,
    email: author.email ?? '',
    at,
  });
  return {
    ready: async () => void (await loadGit()),
    async read(name) {
      const opened = await open();
      const registered = (await readRegistrations(opened)).get(name);
      return describeComponent(opened, name, registered);
    },
    async list({ limit, after }) {
      const opened = await open();
      const names = [...(await readRegistrations(opened)).values()]
        .filter(({ name }) => after === undefined || name > after)
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .slice(0, limit);
      const found = await Promise.all(
        names.map((registered) => describeComponent(opened, registered.name, registered)),
      );
      return found.filter((one) => one !== undefined);
    },
    async content(name, version) {
      const opened = await open();
      const object = await opened.refs.read(`${TAGS}${name}/${version}`);
      const tagged = object === undefined ? undefined : await opened.objects.readTag(object);
      return tagged && contentAt(opened, tagged.commit, name, version);
    },
    async register(registration, expected, now) {
      const opened = await open();
      return opened.refs.locked(LOCK, async () => {
        const found = (await readRegistrations(opened)).get(registration.name);
        if (expected !== undefined && !found) throw notRegistered(opened, registration.name);
        if (found && registrationTag(found) !== expected) return undefined;
        const kept = { ...registration, ...(found && { kind: found.kind }) };
        const isWritten = await writeRegistration(opened, kept, sign(undefined, now));
        return isWritten ? describeComponent(opened, kept.name, kept) : undefined;
      });
    },
    async addVersion(name, version, content) {
      const opened = await open();
      const registered = (await readRegistrations(opened)).get(name);
      const ref = `${TAGS}${name}/${version.version}`;
      if (!registered) {
        const { versions } = await readTags(opened, name);
        if (versions.length > 0) throw notRegistered(opened, name);
        return false;
      }
      if ((await opened.refs.read(ref)) !== undefined) return false;
      const by = sign(version.by, version.createdAt);
      const commit = await commitOf(opened, { ...registered, metadata: content.metadata }, content, version, by);
      const fields = { createdAt: new Date(version.createdAt).toISOString(), by: version.by };
      const message = formatMessage({ text: version.message, fields });
      const tag = await opened.objects.writeTag(ref.slice('refs/tags/'.length), commit, by, message);
      return opened.refs.change(ref, undefined, tag);
    },
    async move(name, { environment, expected, deployment }) {
      const opened = await open();
      const ref = `${TAGS}${name}/${environment}`;
      const { versions, others } = await readTags(opened, name);
      const object = others.get(environment);
      const current = object === undefined ? undefined : await readDeployment(opened, environment, object, versions);
      if (hashJson((current ?? null) as Json) !== hashJson((expected ?? null) as Json)) return false;
      if (!deployment) return opened.refs.change(ref, object, undefined);
      const target = versions.find(({ version }) => version.version === deployment.version);
      if (!target) return false;
      const { environment: _environment, message: text, version, deployedAt, by, previous, ...more } = deployment;
      const fields = { version, deployedAt: new Date(deployedAt).toISOString(), by, previous, ...more };
      const message = formatMessage({ text, fields });
      const who = sign(by, deployedAt);
      const tag = await opened.objects.writeTag(ref.slice('refs/tags/'.length), target.commit, who, message);
      return opened.refs.change(ref, object, tag);
    },
    async readCommitted(file) {
      const { repository, objects, refs } = await open();
      const head = await readHead(repository, refs);
      return head.commit === undefined ? undefined : objects.readText(head.commit, repository.prefix + file);
    },
    folder: async () => (await open()).repository.project,
  };
}

async function openRepository(path: string): Promise<Opened> {
  const repository = await findRepository(path);
  let last: { readonly text: string; readonly registrations: ReadonlyMap<string, Registration> } | undefined;
  const parse = (text: string) => {
    if (last?.text !== text) last = { text, registrations: parseComponents(text, COMPONENTS_FILE) };
    return last.registrations;
  };
  return { repository, parse, refs: createRefs(repository.gitDir), objects: createObjects(repository.gitDir) };
}

/** Of the checkout, or of `HEAD` in a bare repository. */
async function readRegistrations(opened: Opened): Promise<ReadonlyMap<string, Registration>> {
  // A checkout that is away must not look like one without components.
  await stat(join(opened.repository.headDir, 'HEAD'));
  return opened.parse(await readComponentsFile(opened));
}

async function readComponentsFile({ repository, refs, objects }: Opened): Promise<string> {
  if (repository.project !== undefined) {
    return readFile(join(repository.project, COMPONENTS_FILE), 'utf8').catch((error: unknown) => {
      if ((error as { readonly code?: unknown }).code === 'ENOENT') return '';
      throw error;
    });
  }
  const { commit } = await readHead(repository, refs);
  return (commit === undefined ? undefined : await objects.readText(commit, COMPONENTS_FILE)) ?? '';
}

/** @returns false if `HEAD` was changed meanwhile */
async function writeRegistration(opened: Opened, registration: Registration, by: Signature): Promise<boolean> {
  const text = editComponents(await readComponentsFile(opened), registration, COMPONENTS_FILE);
  const { repository, refs, objects } = opened;
  if (repository.project !== undefined) {
    const unfinished = join(repository.project, `${COMPONENTS_FILE}.tmp`);
    await writeFile(unfinished, text);
    await rename(unfinished, join(repository.project, COMPONENTS_FILE));
    return true;
  }
  const { branch, commit } = await readHead(repository, refs);
  const next = await objects.commit(commit, new Map([[COMPONENTS_FILE, text]]), by, `component ${registration.name}`);
  return branch !== undefined && refs.change(branch, commit, next);
}

async function readHead({ headDir }: Repository, refs: Refs) {
  const text = (await readFile(join(headDir, 'HEAD'), 'utf8')).trim();
  const branch = /^ref: (.+)$/.exec(text)?.[1];
  return branch === undefined ? { branch, commit: text } : { branch, commit: await refs.read(branch) };
}

/** A component that is in no `components.yaml` any more keeps its versions. */
async function describeComponent(
  opened: Opened,
  name: string,
  registered: Registration | undefined,
): Promise<StoredComponent | undefined> {
  const { versions, others } = await readTags(opened, name);
  const last = versions.at(-1);
  const registration = registered ?? (last && (await registrationAt(opened, last.commit, name)));
  if (!registration) return undefined;
  const deployments: Deployment[] = [];
  for (const [environment, object] of others) {
    if (environmentProblem(environment) !== undefined) continue;
    const deployment = await readDeployment(opened, environment, object, versions);
    if (deployment) deployments.push(deployment);
  }
  const tag = registrationTag(registration);
  return { ...registration, tag, versions: versions.map(({ version }) => version), deployments };
}

async function readTags({ refs, objects }: Opened, name: string): Promise<ComponentTags> {
  const prefix = `${TAGS}${name}/`;
  const versions: TaggedVersion[] = [];
  const others = new Map<string, string>();
  for (const [ref, object] of await refs.list(prefix)) {
    const label = ref.slice(prefix.length);
    if (!isVersion(label)) {
      others.set(label, object);
      continue;
    }
    const tagged = await objects.readTag(object);
    if (tagged) versions.push({ version: versionOf(label, tagged), object, commit: tagged.commit });
  }
  return { versions: versions.sort((a, b) => compareVersions(a.version.version, b.version.version)), others };
}

function versionOf(version: string, { note, committedAt }: Tagged): ComponentVersion {
  if (!note) return { version, createdAt: committedAt };
  const { text, fields } = parseMessage(note.message, (name) => VERSION_FIELDS.includes(name));
  const createdAt = instantOf(fields.createdAt);
  // A tag of the command `git` has only the name of its tagger.
  const by = createdAt === undefined ? note.by : fields.by;
  return {
    ...{ version, createdAt: createdAt ?? note.at },
    ...(text !== undefined && { message: text }),
    ...(typeof by === 'string' && by !== '' && { by }),
  };
}

/** Its tags may be there without the file, such as after a checkout of another branch. */
function notRegistered({ repository }: Opened, name: string): OrchestratorError {
  const file = `${COMPONENTS_FILE} of the checkout${repository.prefix && ` in ${repository.prefix}`}`;
  const message = `${file} has no entry \`${name}\`: check out the branch that has it, or register the component`;
  return new OrchestratorError('NOT_FOUND', message);
}

/** @returns undefined for a tag of a commit that is not a version */
async function readDeployment(
  { objects }: Opened,
  environment: string,
  object: string,
  versions: readonly TaggedVersion[],
): Promise<Deployment | undefined> {
  const tagged = await objects.readTag(object);
  if (!tagged) return undefined;
  const here = versions.filter(({ commit }) => commit === tagged.commit);
  const same = here.find((one) => one.object === object)?.version;
  // `git tag production components/greet/v1.0.0` gives it the object of that tag, which has no note about a deployment.
  if (same) return { environment, version: same.version, deployedAt: same.createdAt };
  const { text, fields } = parseMessage(tagged.note?.message ?? '', (name) => DEPLOYMENT_FIELDS.includes(name));
  // What the tag points at decides: the command `git` may move it and keep a message.
  const { version } =
    here.find((one) => tagged.through?.includes(one.object)) ??
    here.find((one) => one.version.version === fields.version) ??
    here.at(-1) ??
    {};
  if (!version) return undefined;
  const shares = version.version === fields.version ? splitOf(fields, versions) : {};
  if (!shares) return undefined;
  const at = instantOf(fields.deployedAt);
  const by = at === undefined ? tagged.note?.by : fields.by;
  return {
    ...{ environment, version: version.version, deployedAt: at ?? tagged.note?.at ?? tagged.committedAt },
    ...(typeof by === 'string' && by !== '' && { by }),
    ...(text !== undefined && { message: text }),
    ...(typeof fields.previous === 'string' && { previous: fields.previous }),
    ...(Array.isArray(fields.earlier) && fields.earlier.every(isVersion) && { earlier: fields.earlier }),
    ...shares,
  };
}

async function registrationAt(
  { repository, objects }: Opened,
  commit: string,
  name: string,
): Promise<Registration | undefined> {
  const text = await objects.readText(commit, repository.prefix + COMPONENTS_FILE);
  return parseComponents(text ?? '', `${COMPONENTS_FILE} in commit ${commit}`).get(name);
}

/** @throws VERSION_NOT_FOUND if the commit of the version lacks the component or its file */
async function contentAt(opened: Opened, commit: string, name: string, version: string): Promise<ComponentContent> {
  const fail = (problem: string): never => {
    const message = `${name} ${version} has no text: ${problem} in commit ${commit}, at which its tag points; create a higher version`;
    throw new OrchestratorError('VERSION_NOT_FOUND', message, { details: { component: name, ref: version } });
  };
  const registration = await registrationAt(opened, commit, name);
  if (!registration) return fail(`${COMPONENTS_FILE} does not name the component`);
  const { kind, metadata, file } = registration;
  if (file === undefined) return fail(`${COMPONENTS_FILE} names no \`file\` of the component`);
  const content = await opened.objects.readText(commit, opened.repository.prefix + file);
  if (content === undefined) return fail(`there is no file \`${file}\``);
  if (content.length > MAX_CONTENT) return fail(`\`${file}\` has more than ${MAX_CONTENT} characters`);
  return { kind, content, metadata };
}

/** The commit that has a text: `HEAD`, or a new one on top of it, to which only the tag of the version leads. */
async function commitOf(
  opened: Opened,
  registered: Registration,
  { kind, content }: ComponentContent,
  { version }: ComponentVersion,
  by: Signature,
): Promise<string> {
  const { repository, refs, objects } = opened;
  const { name, file = `${FOLDERS[kind]}/${name}.${EXTENSIONS[kind]}` } = registered;
  const registration = { ...registered, file };
  const { commit: head } = await readHead(repository, refs);
  const at = repository.prefix + COMPONENTS_FILE;
  const components = (head === undefined ? undefined : await objects.readText(head, at)) ?? '';
  const where = `${COMPONENTS_FILE} in HEAD`;
  const known = parseComponents(components, where).get(name);
  const isSame = known && registrationTag(known) === registrationTag(registration);
  const path = repository.prefix + file;
  if (head !== undefined && isSame && (await objects.readText(head, path)) === content) return head;
  const texts = new Map([[path, content]]);
  if (!isSame) texts.set(at, editComponents(components, registration, where));
  return objects.commit(head, texts, by, `component ${name} ${version}`);
}

/**
 * What the message of a deployment of several versions has more.
 * @returns undefined for a message that is wrong: then the environment has no version, and never another one than was meant
 */
function splitOf(
  { split, splitBy, rollout }: Readonly<Record<string, unknown>>,
  versions: readonly TaggedVersion[],
): Partial<Deployment> | undefined {
  if (split === undefined && splitBy === undefined && rollout === undefined) return {};
  const isKnown = (name: string) => versions.some(({ version }) => version.version === name);
  if (splitProblem(split) !== undefined || !Object.keys(split as Split).every(isKnown)) return undefined;
  if (splitBy !== undefined && typeof splitBy !== 'string') return undefined;
  if (rollout !== undefined && !isRollout(rollout, split as Split)) return undefined;
  return {
    split: split as Split,
    ...(splitBy !== undefined && { splitBy }),
    ...(rollout !== undefined && { rollout }),
  };
}

function instantOf(text: unknown): number | undefined {
  const at = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}
