/** `ensemble definition`: stores definitions, shows their versions and rolls back: in a store, or on a running server. */

import { readFile } from 'node:fs/promises';
import { readPages } from '../../engine/base/read-pages.ts';
import type { DefinitionVersion } from '../../engine/ensemble/definition-version.ts';
import { sharesOf } from '../../engine/execution/execution-facts.ts';
import type { EnsembleItem } from '../../orchestrator/definitions/definitions.ts';
import type { EnsembleTraffic } from '../../orchestrator/traffic/traffic.ts';
import { findTargets, requireProject } from '../project/find-target.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { Service, ServiceHost } from '../service/service.ts';
import { openAsClient, parseEnsemble, projectNames, showPath } from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { oneLine, printJson } from '../terminal/text.ts';
import { formatDistance } from '../terminal/times.ts';
import { type DeploymentOptions, deploymentOf } from './component-command.ts';

export interface DefinitionOptions extends PlaceOptions {
  readonly json?: boolean;
}

export interface DefinitionPutOptions extends DefinitionOptions {
  readonly label?: string;
  readonly message?: string;
  readonly commit?: string;
}

export interface DefinitionRollbackOptions extends DefinitionOptions {
  readonly to: string;
  readonly message?: string;
}

/** A definition in a file. */
interface DefinitionFile {
  /** As a user writes it. */
  readonly file: string;
  readonly text: string;
  readonly name: string;
}

interface Stored {
  readonly item: EnsembleItem;
  readonly how: 'created' | 'replaced' | 'unchanged';
  /** The version that new executions run, if traffic says so. */
  readonly runs: string;
}

/** Creates ensembles from files, or replaces those that exist. All files are read before the first is stored. */
export async function putDefinitions(
  paths: readonly string[],
  options: DefinitionPutOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { label, message, commit, json } = options;
  const files = (await Promise.all(paths.map((path) => readDefinitions(path, host.cwd)))).flat();
  refuseTwice(files);
  const notes = Object.fromEntries(
    Object.entries({ label, message, commit }).filter(([, value]) => value !== undefined),
  );
  const made: Stored[] = [];
  const put = async ({ ensembles }: Service) => {
    for (const one of files) made.push(await storeOne(ensembles, one, notes));
  };
  if (!isElsewhere(options, host)) await refuseThoseInCode(files, options, host);
  try {
    await withService(options, host, put, { create: true, scripts: true });
  } catch (error) {
    const failed = files[made.length];
    const stored = made.map(({ item }) => item.name).join(', ');
    if (stored !== '') output.say(`${output.colors.yellow('!')} stored before the error: ${stored}\n`);
    if (failed && files.length > 1) output.say(`${failed.file}:\n`);
    throw error;
  }
  if (json) output.print(`${printJson({ ensembles: made.map(({ item }) => item) })}\n`);
  else
    for (const { item, how, runs } of made) {
      const mark = output.colors.green(how === 'unchanged' ? '=' : '✓');
      output.say(
        `${mark} ${item.name} ${how === 'unchanged' ? 'is unchanged at' : `was ${how}:`} version ${shownVersion(item)}\n`,
      );
      // A fix that nothing runs is found now.
      if (runs !== 'latest') output.say(`  its traffic is set: see ensemble definition traffic ${item.name}\n`);
    }
  return 0;
}

/** Whether the store is not that of the project. */
function isElsewhere({ url, storage, dir }: DefinitionOptions, { process }: ServiceHost): boolean {
  return url !== undefined || storage !== undefined || (dir === undefined && Boolean(process.env.ENSEMBLE_URL));
}

/** What the project defines in its files is code of its processes: they would never use a stored definition of the same name. */
async function refuseThoseInCode(
  files: readonly DefinitionFile[],
  { dir }: DefinitionOptions,
  { cwd }: ServiceHost,
): Promise<void> {
  const { options } = await openAsClient(await requireProject(cwd, dir), 'ensembles');
  const inCode = new Set(projectNames(options).ensembles);
  const found = files.find(({ name }) => inCode.has(name));
  if (found)
    throw wrongUsage(
      `${found.file}: this project has ensemble \`${found.name}\` among its own definitions, so its processes would never use a stored one. Keep the file outside of the folder \`ensembles\`, or name another store or a server`,
    );
}

function refuseTwice(files: readonly DefinitionFile[]): void {
  for (const [i, { name, file }] of files.entries()) {
    const other = files.slice(0, i).find((one) => one.name === name);
    if (other) throw wrongUsage(`${other.file} and ${file} both define ensemble \`${name}\`: name one of them`);
  }
}

/** The definitions of a file, or of a folder with definitions. */
async function readDefinitions(path: string, cwd: string): Promise<readonly DefinitionFile[]> {
  const files: DefinitionFile[] = [];
  for (const target of await findTargets(cwd, path)) {
    if (target.kind === 'project')
      throw wrongUsage(`${path} is a project; name the files of definitions, or a folder that has nothing else`);
    const found = target.kind === 'file' ? target.path : `${target.directory}/${target.file}`;
    const file = showPath(cwd, found);
    if (target.kind === 'member' && target.file.startsWith('agents/'))
      throw new CliError(`${file} is an agent; \`definition put\` stores ensembles`);
    const text = await readFile(found, 'utf8');
    files.push({ file, text, name: parseEnsemble(text).name });
  }
  return files;
}

async function storeOne(
  ensembles: Service['ensembles'],
  { name, text }: DefinitionFile,
  notes: Pick<DefinitionPutOptions, 'label' | 'message' | 'commit'>,
): Promise<Stored> {
  const known = await ensembles.find(name);
  const [before] = known ? await ensembles.versions(name) : [];
  const item = known ? await ensembles.update(name, text, notes) : await ensembles.create(text, notes);
  const [after] = await ensembles.versions(name);
  const how = known ? (printJson(before) === printJson(after) ? 'unchanged' : 'replaced') : 'created';
  return { item, how, runs: (await ensembles.traffic(name)).version };
}

const LIST_COLUMNS: readonly Column[] = [
  ...[{ title: 'ENSEMBLE', shrinkTo: 8 }, { title: 'LABEL' }, { title: 'VERSION' }, { title: 'FROM' }],
  ...[{ title: 'ACTIVE' }, { title: 'CHANGED' }],
];

/** The ensembles of a store or a server. */
export async function listDefinitions(options: DefinitionOptions, output: Output, host: ServiceHost): Promise<number> {
  const { items } = await withService(options, host, ({ ensembles }) =>
    readPages<'ensembles', EnsembleItem>('ensembles', (page) => ensembles.list(page)),
  );
  if (options.json) output.print(`${printJson({ ensembles: items })}\n`);
  else if (items.length === 0) output.say('no ensembles; store one with: ensemble definition put FILE\n');
  else {
    const now = Date.now();
    const rows = items.map(({ name, label = '', version, source, active, updatedAt }) =>
      [name, label, version, source, active ? 'yes' : 'no', formatDistance(updatedAt, now)].map(oneLine),
    );
    output.print(formatTable(LIST_COLUMNS, rows, terminalWidth(host.process)));
  }
  return 0;
}

const COLUMNS: readonly Column[] = [
  ...[{ title: 'LABEL', shrinkTo: 8 }, { title: 'VERSION' }, { title: 'STORED' }, { title: 'BY', shrinkTo: 8 }],
  ...[
    { title: 'COMMIT', shrinkTo: 7 },
    { title: 'MESSAGE', shrinkTo: 12 },
  ],
];

/** The versions that are kept, the newest first. */
export async function listVersions(
  name: string,
  options: DefinitionOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const versions = await withService(options, host, ({ ensembles }) => ensembles.versions(name));
  if (options.json) output.print(`${printJson({ versions })}\n`);
  else {
    const now = Date.now();
    const rows = versions.map(({ version, label = '', createdAt, by = '', commit = '', message = '' }) =>
      [label, version, formatDistance(createdAt, now), by, commit, message].map(oneLine),
    );
    output.print(formatTable(COLUMNS, rows, terminalWidth(host.process)));
  }
  return 0;
}

/** Prints a version: its text as it was stored, or as JSON. */
export async function showVersion(
  [name, ref]: readonly [name: string, ref: string | undefined],
  options: DefinitionOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const found = await withService(options, host, ({ ensembles }) => ensembles.version(name, ref ?? 'latest'));
  if (options.json || found.text === undefined) {
    output.print(`${printJson(options.json ? found : found.definition)}\n`);
    return 0;
  }
  output.say(`${output.colors.dim(`${name} ${shownVersion(found)}`)}\n`);
  output.printRaw(found.text);
  return 0;
}

export async function rollBackDefinition(
  name: string,
  options: DefinitionRollbackOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { to, message, json } = options;
  let hadTraffic = false;
  const rollBack = async ({ ensembles }: Service) => {
    if ((await ensembles.find(name))?.source === 'store')
      hadTraffic = (await ensembles.traffic(name)).version !== 'latest';
    return ensembles.rollback(name, { to, ...(message !== undefined && { message }) });
  };
  const made = await withService(options, host, rollBack, { scripts: true });
  if (json) output.print(`${printJson(made)}\n`);
  else {
    output.say(`${output.colors.green('✓')} new executions of ${name} run version ${shownVersion(made)}\n`);
    if (hadTraffic) output.say('  its traffic has ended\n');
  }
  return 0;
}

export interface DefinitionTrafficOptions extends DefinitionOptions, DeploymentOptions {
  readonly shadow?: string;
}

/** Says which versions new executions run. Without options, it shows that. */
export async function traffic(
  [name, version]: readonly [name: string, version: string | undefined],
  options: DefinitionTrafficOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { shadow, json } = options;
  const given = { ...deploymentOf(version, options), ...(shadow !== undefined && { shadow }) };
  const isSet = Object.keys(given).length > 0;
  const now = await withService(options, host, ({ ensembles }) => ensembles.traffic(name, isSet ? given : undefined), {
    scripts: true,
  });
  if (json) output.print(`${printJson(now)}\n`);
  else for (const line of linesOf(name, now)) output[isSet ? 'say' : 'print'](`${oneLine(line)}\n`);
  return 0;
}

function linesOf(name: string, now: EnsembleTraffic): readonly string[] {
  const { splitBy, guard, rollout, counts = {}, shadow, shadowed, by, message } = now;
  const differences = (shadowed?.differences ?? []).map(({ executionId, status, path, output }) => {
    const parts = [
      ...(status ? [`${status.was}, and would be ${status.shadow}`] : []),
      ...(path ? [`ran ${path.was.join(', ')}; would run ${path.shadow.join(', ')}`] : []),
      ...(output ?? []).map(
        (one) =>
          `${one.path}: ${JSON.stringify(one.was) ?? 'nothing'}, would be ${JSON.stringify(one.shadow) ?? 'nothing'}`,
      ),
    ];
    return `  ${executionId}: ${parts.join('; ')}`;
  });
  return [
    `new executions of ${name} run ${shownRuns(now)}${splitBy === undefined ? '' : `, by ${splitBy}`}`,
    ...(by === undefined && message === undefined
      ? []
      : [`set by ${by ?? 'nobody'}${message === undefined ? '' : `: ${message}`}`]),
    ...(rollout ? [`${rollout.version} is rolled out in steps of ${rollout.steps.join(', ')} %`] : []),
    ...(guard === undefined && !rollout ? [] : [`guard: ${guard ?? rollout?.guard}`]),
    ...Object.entries(counts).map(([one, { runs, failures }]) => `  ${one}: ${failures} of ${runs} failed`),
    ...(shadow === undefined
      ? []
      : [`shadow: ${shadow}: ${shadowed?.different} of ${shadowed?.runs} differ, ${shadowed?.left} left`]),
    ...differences,
  ];
}

/** What new executions run. */
export function shownRuns({ version, split }: Pick<EnsembleTraffic, 'version' | 'split'>): string {
  if (split) return sharesOf(split);
  return version === 'latest' ? 'the newest version' : version;
}

/** Such as `v2 (4f1c...)`. */
export function shownVersion({ version, label }: Pick<DefinitionVersion, 'version' | 'label'>): string {
  return label === undefined ? version : `${label} (${version})`;
}
