/** `ensemble component`: registers components, creates versions, shows and deploys them: in a repository, in a store, or on a running server. */

import { readPages } from '../../engine/base/read-pages.ts';
import {
  COMPONENT_KINDS,
  type ComponentKind,
  type Deployment,
  type ResolvedComponent,
} from '../../engine/component/component.ts';
import { showSplit } from '../../engine/component/split.ts';
import { readComponentFile } from '../project/component-file.ts';
import { readInput } from '../project/read-input.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { Service, ServiceHost } from '../service/service.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { oneLine, printJson } from '../terminal/text.ts';
import { formatDistance } from '../terminal/times.ts';

export interface ComponentOptions extends PlaceOptions {
  readonly json?: boolean;
}

export interface ComponentAddOptions extends ComponentOptions {
  readonly kind?: string;
  readonly metadata?: string;
  readonly replace?: boolean;
}

export interface ComponentTagOptions extends ComponentOptions {
  readonly message?: string;
  readonly file?: string;
}

export interface ComponentMoveOptions extends ComponentOptions {
  readonly to: string;
  readonly message?: string;
}

/** What a deployment says, besides its place. */
export interface DeploymentOptions {
  readonly split?: string;
  readonly by?: string;
  readonly guard?: string;
  readonly steps?: string;
  readonly every?: string;
  readonly message?: string;
}

export interface ComponentDeployOptions extends ComponentMoveOptions, DeploymentOptions {
  readonly message?: string;
}

export interface ComponentShowOptions extends ComponentOptions {
  readonly key?: string;
}

type Components = Service['components'];

const KIND_OF_FOLDER: Readonly<Record<string, ComponentKind>> = {
  ...{ prompts: 'prompt', templates: 'template', configs: 'config', queries: 'query' },
};

/** Registers a component, or with `replace` changes its file and its metadata. */
export async function addComponent(
  [name, file]: readonly [name: string, file: string],
  options: ComponentAddOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { cwd, process } = host;
  const metadata = await readInput(options.metadata, cwd, process.stdin, { option: '--metadata' });
  const made = await withService(
    options,
    host,
    async ({ components }) => {
      const { path } = await readComponentFile(file, cwd, components.folder);
      const kind = readKind(options.kind, path);
      const fields = { file: path, metadata: metadata as object };
      if (options.replace) {
        const { kind: registered } = await components.get(name);
        if (registered === kind) return components.update(name, fields);
        throw wrongUsage(`${name} is a ${registered}, and stays one: register a ${kind} with another name`);
      }
      return components.register({ name, kind, ...fields });
    },
    { create: true, components: 'add' },
  );
  if (options.json) output.print(`${printJson(made)}\n`);
  else {
    output.say(`${output.colors.green('✓')} ${made.kind} ${name} is registered, with ${oneLine(made.file ?? '')}\n`);
    output.say(`  Create a version of it: ensemble component tag ${name} v1.0.0\n`);
  }
  return 0;
}

/** Creates a version. In a repository, the file must be as it is in `HEAD`. */
export async function tagComponent(
  [name, version]: readonly [name: string, version: string],
  options: ComponentTagOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { message } = options;
  const made = await withService(
    options,
    host,
    async ({ components }) => {
      const content = await readContent(name, options, components, host);
      return components.createVersion(name, { version, content, ...(message !== undefined && { message }) });
    },
    { components: 'use' },
  );
  if (options.json) output.print(`${printJson(made)}\n`);
  else {
    output.say(`${output.colors.green('✓')} ${name} has version ${made.version}\n`);
    output.say(`  Deploy it: ensemble component deploy ${name} ${made.version} --to production\n`);
  }
  return 0;
}

async function readContent(
  name: string,
  { file }: ComponentTagOptions,
  components: Components,
  { cwd }: ServiceHost,
): Promise<string> {
  const { repository, folder } = components;
  const registered = (await components.get(name)).file;
  if (file !== undefined) return (await readComponentFile(file, cwd, repository ? folder : undefined)).text;
  if (registered === undefined) throw wrongUsage(`${name} is registered without a file: name one with --file`);
  if (!repository) return (await readComponentFile(registered, folder ?? cwd, folder)).text;
  const committed = await repository.readCommitted(registered);
  const commit = 'git add . && git commit';
  if (committed === undefined) throw new CliError(`${registered} is not in HEAD: commit it first: ${commit}`);
  if (folder === undefined) return committed;
  for (const path of ['components.yaml', registered]) {
    const { text } = await readComponentFile(path, folder, folder);
    if (text !== (await repository.readCommitted(path)))
      throw new CliError(`${path} differs from HEAD: commit it first: ${commit}`);
  }
  return committed;
}

const VERSION_COLUMNS: readonly Column[] = [
  { title: 'VERSION' },
  { title: 'CREATED' },
  { title: 'BY', shrinkTo: 8 },
  { title: 'DEPLOYED TO', shrinkTo: 10 },
  { title: 'MESSAGE', shrinkTo: 12 },
];

/** The versions of a component, the highest first. */
export async function listTags(
  name: string,
  options: ComponentOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const [versions, deployments] = await withService(
    options,
    host,
    ({ components }) => Promise.all([components.versions(name), components.deployments(name)]),
    { components: 'use' },
  );
  if (options.json) output.print(`${printJson({ versions })}\n`);
  else if (versions.length === 0)
    output.say(`${name} has no version; create one with: ensemble component tag ${name} v1.0.0\n`);
  else {
    const now = Date.now();
    const rows = versions.map(({ version, createdAt, by = '', message = '' }) => {
      const environments = deployments
        .filter((one) => (one.split ?? { [one.version]: 100 })[version] !== undefined)
        .map(({ environment }) => environment);
      return [version, formatDistance(createdAt, now), by, environments.join(', '), message];
    });
    output.print(formatTable(VERSION_COLUMNS, rows, terminalWidth(host.process)));
  }
  return 0;
}

export async function deployComponent(
  [name, version]: readonly [name: string, version: string | undefined],
  options: ComponentDeployOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  if ((version === undefined) === (options.split === undefined))
    throw wrongUsage('name one version, or several with --split v1.2.0=90,v1.3.0=10');
  const deployment = { to: options.to, ...deploymentOf(version, options) };
  return move(name, options, output, host, (components) => components.deploy(name, deployment));
}

export function deploymentOf(
  version: string | undefined,
  { message, split, by, guard, steps, every }: DeploymentOptions,
) {
  return {
    ...(version !== undefined && { version }),
    ...(split !== undefined && { split: readShares(split) }),
    ...(by !== undefined && { by }),
    ...(guard !== undefined && { guard }),
    ...(steps !== undefined && { steps: steps.split(',').map(Number) }),
    ...(every !== undefined && { every }),
    ...(message !== undefined && { message }),
  };
}

/** @param given - such as `v1.2.0=90,v1.3.0=10` */
function readShares(given: string): Record<string, number> {
  const shares: Record<string, number> = {};
  for (const part of given.split(',')) {
    const [, version, share] = /^\s*([^=\s]+)\s*=\s*(\d+(?:\.\d+)?)%?\s*$/.exec(part) ?? [];
    if (version === undefined || Object.hasOwn(shares, version))
      throw wrongUsage(`--split must have the share of each version once, such as v1.2.0=90,v1.3.0=10, not ${given}`);
    shares[version] = Number(share);
  }
  return shares;
}

export async function rollbackComponent(
  name: string,
  options: ComponentMoveOptions & { readonly from?: string },
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { to, from, message } = options;
  return move(name, options, output, host, (components) => components.rollback(name, { to, from, message }));
}

async function move(
  name: string,
  options: ComponentMoveOptions,
  output: Output,
  host: ServiceHost,
  change: (components: Components) => ReturnType<Components['deploy']>,
): Promise<number> {
  const made = await withService(options, host, ({ components }) => change(components), { components: 'use' });
  if (options.json) output.print(`${printJson(made)}\n`);
  else {
    const before = made.previous === undefined ? '' : `; before: ${made.previous}`;
    output.say(`${output.colors.green('✓')} ${made.environment} has ${name} ${shownVersion(made)}${before}\n`);
  }
  return 0;
}

export async function undeployComponent(
  name: string,
  options: ComponentOptions & { readonly from: string },
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const work = ({ components }: Service) => components.undeploy(name, options.from);
  const done = await withService(options, host, work, { components: 'use' });
  if (options.json) output.print(`${printJson(done)}\n`);
  else output.say(`${output.colors.green('✓')} ${options.from} has no version of ${name} any more\n`);
  return 0;
}

const STATUS_COLUMNS: readonly Column[] = [
  { title: 'COMPONENT', shrinkTo: 8 },
  { title: 'KIND' },
  { title: 'ENVIRONMENT', shrinkTo: 10 },
  { title: 'VERSION', shrinkTo: 8 },
  { title: 'DEPLOYED' },
  { title: 'BY', shrinkTo: 8 },
  { title: 'PREVIOUS' },
  { title: 'MESSAGE', shrinkTo: 12 },
];

/** One version, or several with their shares; of a rollout also its guard. */
function shownVersion({ version, split, rollout }: Deployment): string {
  if (!split) return version;
  return rollout ? `${showSplit(split)} while ${rollout.guard}` : showSplit(split);
}

/** The deployments of one component, or of all. */
export async function showStatus(
  name: string | undefined,
  options: ComponentOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const found = await withService(
    options,
    host,
    async ({ components }) => {
      const items =
        name === undefined
          ? (await readPages('components', (page) => components.list(page), MAX_LISTED)).items
          : [await components.get(name)];
      const status = [];
      for (const item of items) status.push({ ...item, deployments: await components.deployments(item.name) });
      return status;
    },
    { components: 'use' },
  );
  if (options.json) {
    output.print(`${printJson(name === undefined ? { components: found } : found[0])}\n`);
    return 0;
  }
  if (found.length === 0) output.say('no components; register one with: ensemble component add NAME FILE\n');
  else {
    const now = Date.now();
    const rows = found.flatMap(({ name, kind, latest = 'no version', deployments }) => {
      const deployed = deployments.map((one) => {
        const { environment, deployedAt, by = '', previous = '', message = '' } = one;
        return [name, kind, environment, shownVersion(one), formatDistance(deployedAt, now), by, previous, message];
      });
      const isDeployed = deployments.some(({ environment }) => environment === 'latest');
      return isDeployed ? deployed : [...deployed, [name, kind, 'latest', latest, '', '', '', '']];
    });
    output.print(formatTable(STATUS_COLUMNS, rows, terminalWidth(host.process)));
  }
  return 0;
}

const MAX_LISTED = 10_000;

/** Prints the text on stdout, and what else is known on stderr. */
export async function showComponent(
  place: string,
  options: ComponentShowOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const [name, ref] = readPlace(place);
  const found = await withService(options, host, ({ components }) => components.version(name, ref, options.key), {
    components: 'use',
  });
  if (options.json) {
    output.print(`${printJson(found)}\n`);
    return 0;
  }
  const metadata = Object.keys(found.metadata).length === 0 ? '' : `  ${oneLine(JSON.stringify(found.metadata))}`;
  output.say(`${output.colors.dim(`${found.kind} ${name} ${found.version}${metadata}`)}\n`);
  output.printRaw(found.content);
  return 0;
}

/** Prints the difference of two versions as a patch. */
export async function diffComponent(
  [name, a, b]: readonly [name: string, a: string, b: string],
  options: ComponentOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const [before, after] = await withService(
    options,
    host,
    ({ components }) => Promise.all([components.version(name, a), components.version(name, b)]),
    { components: 'use' },
  );
  const { createTwoFilesPatch } = await import('diff');
  const patch = (file: string, read: (version: ResolvedComponent) => string): string => {
    const [left, right] = [read(before), read(after)];
    if (left === right) return '';
    const names = [before, after].map(({ version }) => `${name}@${version}/${file}`) as [string, string];
    return createTwoFilesPatch(...names, left, right).replace(/^=+\n/, '');
  };
  const text = patch('text', ({ content }) => content);
  const metadata = patch('metadata', (version) => `${printJson(version.metadata)}\n`);
  if (options.json) {
    output.print(`${printJson({ from: before.version, to: after.version, text, metadata })}\n`);
    return 0;
  }
  if (text === '' && metadata === '') output.say(`${before.version} and ${after.version} of ${name} are equal\n`);
  else output.print(text + metadata);
  return 0;
}

function readPlace(place: string): [name: string, ref: string] {
  const [name = '', ref = '', ...rest] = place.replace(/^(?:prompt|template|config|query):\/\//, '').split('@');
  if (name === '' || ref === '' || rest.length > 0)
    throw wrongUsage(`name the component and its version or environment, such as greet@production, not ${place}`);
  return [name, ref];
}

function readKind(given: string | undefined, path: string): ComponentKind {
  const known = COMPONENT_KINDS.join(', ');
  const kind = given ?? KIND_OF_FOLDER[path.split('/')[0] ?? ''];
  if (kind === undefined) throw wrongUsage(`--kind is missing; it is one of ${known}`);
  const found = COMPONENT_KINDS.find((one) => one === kind);
  if (!found) throw wrongUsage(`--kind must be one of ${known}, not ${JSON.stringify(kind)}`);
  return found;
}
