/** `ensemble diff`: compares a definition of the project with those of a store or a server, and with those that run there. */

import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { type PageRequest, readPages } from '../../engine/base/read-pages.ts';
import { type Execution, OPEN_STATUSES } from '../../engine/execution/execution.ts';
import type { EnsembleItem } from '../../orchestrator/definitions/definitions.ts';
import type { EnsembleTraffic } from '../../orchestrator/traffic/traffic.ts';
import { findFile, isPath, requireProject } from '../project/find-target.ts';
import { openApp } from '../project/open-app.ts';
import { printIssue } from '../project/print-issues.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { Service, ServiceHost } from '../service/service.ts';
import {
  type LoadedDefinition,
  loadDefinitions,
  openToCheck,
  type ProjectOptions,
  shownFrom,
  showPath,
} from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { count, oneLine, printJson } from '../terminal/text.ts';
import { shownRuns, shownVersion } from './definition-command.ts';

export interface DiffOptions extends PlaceOptions {
  readonly app?: string;
  readonly json?: boolean;
}

/** One of the two definitions that are compared. */
interface Side {
  /** Such as `order v2 (4f1c...)`. */
  readonly title: string;
  readonly version: string;
  readonly label?: string;
  /** As it was written. */
  readonly written?: JsonObject;
  /** With the shared agents that it uses. */
  readonly whole?: JsonObject;
}

interface Difference {
  readonly ensemble: string;
  /** Undefined: the store or the server has no such ensemble. */
  readonly from: Pick<Side, 'version' | 'label'> | undefined;
  /** Undefined: the project has none. */
  readonly to: Pick<Side, 'version' | 'label'> | undefined;
  readonly same: boolean;
  /** Of the definitions as YAML. */
  readonly patch: string;
  /** The definitions are equal, and a shared agent that they use is not. */
  readonly onlyAgents?: true;
  /** What new executions run, if that is another version than the newest, or several. */
  readonly traffic?: Pick<EnsembleTraffic, 'version' | 'split'>;
  /** The executions that have not ended, by the version that they run. */
  readonly running: readonly Running[];
}

interface Running {
  readonly version: string;
  readonly label?: string;
  readonly count: number;
}

/** @returns 1 if something differs, or if the project has problems */
export async function diff(
  [ensemble, from, to]: readonly [ensemble: string | undefined, from: string | undefined, to: string | undefined],
  options: DiffOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const needs = to !== undefined ? 'none' : from !== undefined ? 'maybe' : 'project';
  const project = await openDefinitions(ensemble, needs, options, output, host);
  if (!project) return 1;
  const name = ensemble !== undefined && isPath(ensemble) ? project.nameOf(ensemble) : ensemble;
  const { url, token, storage, dir } = options;
  const place = { url, token, storage, ...(url === undefined && { dir }) };
  const all = await withService(place, host, async (service) => {
    if (name !== undefined) return [await compareOne(service, name, [from, to], project.byName.get(name))];
    const names = new Set([...project.byName.keys(), ...(await storedNames(service))]);
    const found: Difference[] = [];
    for (const one of [...names].sort()) found.push(await compareOne(service, one, [], project.byName.get(one), true));
    return found;
  });
  if (options.json) output.print(`${printJson({ ensembles: all })}\n`);
  else for (const one of all) print(one, output);
  return all.every(({ same }) => same) ? 0 : 1;
}

interface ProjectDefinitions {
  readonly byName: ReadonlyMap<string, LoadedDefinition>;
  /** The name of the ensemble in a file. */
  nameOf(path: string): string;
}

/**
 * The definitions of the project. Two versions of a store need none.
 * @returns undefined if they have problems, which this function prints
 */
async function openDefinitions(
  ensemble: string | undefined,
  needs: 'none' | 'maybe' | 'project',
  { dir, app }: DiffOptions,
  { say, colors }: Output,
  { cwd }: ServiceHost,
): Promise<ProjectDefinitions | undefined> {
  const none: ProjectDefinitions = { byName: new Map(), nameOf: String };
  const file = ensemble !== undefined && isPath(ensemble) ? await findFile(cwd, ensemble) : undefined;
  if (needs === 'none' && !file) return none;
  const inCode = app !== undefined && dir === undefined;
  const own = file?.kind === 'member' ? file.directory : undefined;
  const found = own ?? (inCode ? cwd : undefined);
  const directory = found ?? (await requireProject(cwd, dir).catch((error: unknown) => orNone(error, needs)));
  if (directory === undefined) return none;
  const opened = await openToCheck(directory, app === undefined ? {} : await openApp(app, cwd, directory));
  const issues = shownFrom(cwd, directory, opened.files).flatMap((one) => one.issues);
  for (const issue of issues) say(`${printIssue(issue, colors)}\n\n`);
  if (issues.length > 0) {
    say(`${colors.red('✗')} ${count(issues.length, 'problem')}; nothing was compared\n`);
    return undefined;
  }
  // A definition that is stored at run time needs the scripts of the project, and does not belong to its files.
  if (file?.kind === 'file') return definitionIn(file.path, opened.options, cwd);
  const files = new Map(opened.files.map((one) => [one.ensemble, one.file]));
  const byName = new Map(
    loadDefinitions(opened.options).map((one) => {
      const path = files.get(one.name);
      return [one.name, { ...one, ...(path !== undefined && { file: showPath(cwd, `${directory}/${path}`) }) }];
    }),
  );
  return {
    byName,
    nameOf(path) {
      const found = opened.files.find((one) => file?.kind === 'member' && one.file === file.file)?.ensemble;
      if (found !== undefined) return found;
      throw new CliError(`${path} has no ensemble`);
    },
  };
}

function orNone(error: unknown, needs: string): undefined {
  if (needs === 'project' || !(error instanceof CliError)) throw error;
}

/** @throws INVALID_DEFINITION, NOT_CONFIGURED */
async function definitionIn(path: string, options: ProjectOptions, cwd: string): Promise<ProjectDefinitions> {
  const [one] = loadDefinitions({ ...options, ensembles: [await readFile(path, 'utf8')] });
  const { name } = one as LoadedDefinition;
  const found = { ...(one as LoadedDefinition), file: showPath(cwd, path) };
  return { byName: new Map([[name, found]]), nameOf: () => name };
}

async function storedNames({ ensembles }: Service): Promise<readonly string[]> {
  const { items } = await readPages<'ensembles', EnsembleItem>('ensembles', (page) => ensembles.list(page));
  return items.map(({ name }) => name);
}

/** @param isAny - one of all: what only one of the two has is shown as a difference */
async function compareOne(
  service: Service,
  name: string,
  [from, to]: readonly (string | undefined)[],
  file: LoadedDefinition | undefined,
  isAny = false,
): Promise<Difference> {
  const item = await service.ensembles.find(name);
  // Without a file, the newest version.
  const other = to ?? (from === undefined || file ? undefined : 'latest');
  const right = other === undefined ? file && sideOfFile(file) : await sideOf(service, name, other, item);
  if (!right && !isAny) {
    if (!item) await service.ensembles.get(name);
    throw wrongUsage(
      `the project has no ensemble \`${name}\`: name its file, or what to compare, such as: ensemble diff ${name} v1`,
    );
  }
  const left = from === undefined && !item ? undefined : await sideOf(service, name, from ?? 'latest', item);
  return {
    ...{ ensemble: name, from: left && shown(left), to: right && shown(right) },
    ...(await patchOf(left, right)),
    ...(item?.source === 'store' && (await trafficOf(service, name))),
    running: await runningOf(service, name, item),
  };
}

async function trafficOf({ ensembles }: Service, name: string): Promise<Pick<Difference, 'traffic'>> {
  const { version, split } = await ensembles.traffic(name);
  return split || version !== 'latest' ? { traffic: { version, ...(split && { split }) } } : {};
}

function shown({ version, label }: Side): Pick<Side, 'version' | 'label'> {
  return { version, ...(label !== undefined && { label }) };
}

function sideOfFile({ name, version, written, whole, file = 'code' }: LoadedDefinition): Side {
  return { title: `${name} ${file}`, version, written, whole };
}

/** @param ref - `latest`, a label, a hash, or the id of an execution */
async function sideOf(
  { ensembles, executions }: Service,
  name: string,
  ref: string,
  item: EnsembleItem | undefined,
): Promise<Side> {
  if (/^exec[_-]/.test(ref)) {
    const { ensemble, version, definition } = await executions.definition(ref);
    if (ensemble !== name) throw wrongUsage(`${ref} is an execution of \`${ensemble}\`, not of \`${name}\``);
    return { title: `${name} ${version} of ${ref}`, version, whole: definition as unknown as JsonObject };
  }
  const found = await ensembles.version(name, ref);
  const definition = found.definition as unknown as JsonObject;
  const title = `${name} ${shownVersion(found)}`;
  return {
    ...shown({ ...found, title }),
    title,
    ...(item?.source === 'code' ? { whole: definition } : { written: definition }),
  };
}

async function patchOf(
  left: Side | undefined,
  right: Side | undefined,
): Promise<Pick<Difference, 'patch' | 'same' | 'onlyAgents'>> {
  if (left && right && left.version === right.version) return { patch: '', same: true };
  const [before, after] = inOneForm(left, right);
  const { createTwoFilesPatch } = await import('diff');
  const toText = (definition: Json | undefined) =>
    definition === undefined ? '' : stringify(definition, { lineWidth: 0 });
  const ordered = before && after ? inOrderOf(after, before) : after;
  const titles = [left?.title ?? '/dev/null', right?.title ?? '/dev/null'] as const;
  const patch = createTwoFilesPatch(...titles, toText(before), toText(ordered)).replace(/^=+\n/, '');
  return { patch, same: false, ...(!/^@@/m.test(patch) && { onlyAgents: true }) };
}

/** Both as they were written, or both with their shared agents. One that has them is shown without those that the other can't have. */
function inOneForm(left: Side | undefined, right: Side | undefined): readonly (JsonObject | undefined)[] {
  const sides = [left, right].filter((side) => side !== undefined);
  if (sides.every(({ written }) => written)) return [left?.written, right?.written];
  if (sides.every(({ whole }) => whole)) return [left?.whole, right?.whole];
  const own = new Set(sides.flatMap(({ written }) => agentsOf(written)).map(({ name }) => name));
  const without = (side: Side | undefined): JsonObject | undefined => {
    if (!side?.whole || side.written) return side?.written;
    const { agents: _agents, ...rest } = side.whole;
    const agents = agentsOf(side.whole).filter(({ name }) => own.has(name));
    return agents.length > 0 ? { ...rest, agents } : rest;
  };
  return [without(left), without(right)];
}

function agentsOf(definition: JsonObject | undefined): readonly JsonObject[] {
  return (definition?.agents ?? []) as readonly JsonObject[];
}

/** A value with its keys in the order of another one: the order means nothing. */
function inOrderOf(value: Json, like: Json | undefined): Json {
  if (Array.isArray(value)) return value.map((item, i) => inOrderOf(item, Array.isArray(like) ? like[i] : undefined));
  if (!isMap(value)) return value;
  const other = like !== undefined && isMap(like) ? like : {};
  const keys = [...Object.keys(other).filter((key) => Object.hasOwn(value, key)), ...Object.keys(value)];
  return Object.fromEntries([...new Set(keys)].map((key) => [key, inOrderOf(value[key] as Json, other[key])]));
}

/** How many executions are counted, at most. */
const MAX_COUNTED = 10_000;

async function runningOf(
  { executions, ensembles }: Service,
  ensemble: string,
  item: EnsembleItem | undefined,
): Promise<readonly Running[]> {
  const counts = new Map<string, number>();
  let left = MAX_COUNTED;
  for (const status of OPEN_STATUSES) {
    if (left <= 0) break;
    const read = (page: PageRequest) => executions.list({ ...page, ensemble, status, values: false });
    const { items } = await readPages<'executions', Execution<unknown>>('executions', read, left);
    for (const { version } of items) counts.set(version, (counts.get(version) ?? 0) + 1);
    left -= items.length;
  }
  if (counts.size === 0) return [];
  const versions = item ? await ensembles.versions(ensemble) : [];
  const labels = new Map([...versions].reverse().map(({ version, label }) => [version, label]));
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([version, count]) => {
      const label = labels.get(version);
      return { version, ...(label !== undefined && { label }), count };
    });
}

function print(
  { ensemble, from, to, same, patch, onlyAgents, traffic, running }: Difference,
  { print, say, colors }: Output,
): void {
  const name = oneLine(ensemble);
  if (same) say(`${colors.green('=')} ${name}: no difference\n`);
  else if (!from) say(`${colors.yellow('+')} ${name}: is new\n`);
  else if (!to) say(`${colors.dim('-')} ${name}: is not in the project\n`);
  else if (onlyAgents) say(`${colors.yellow('~')} ${name}: only a shared agent that it uses differs\n`);
  else print(patch);
  if (traffic) say(`  new executions run ${oneLine(shownRuns(traffic))}\n`);
  const counted = running.reduce((sum, one) => sum + one.count, 0);
  for (const one of running) {
    const isOther = one.version !== (to ?? from)?.version;
    const runs = `${count(one.count, 'execution')} run${one.count === 1 ? 's' : ''}`;
    say(`  ${oneLine(`${runs} ${shownVersion(one)}${isOther ? ', another version' : ''}`)}\n`);
  }
  if (counted >= MAX_COUNTED) say(`  and maybe more: only ${count(counted, 'execution')} were counted\n`);
}
