/** `ensemble definition`: stores definitions, shows their versions and rolls back: in a store, or on a running server. */

import { readFile } from 'node:fs/promises';
import type { DefinitionVersion } from '../../engine/ensemble/definition-version.ts';
import type { EnsembleTraffic } from '../../orchestrator/traffic/traffic.ts';
import { findTargets } from '../project/find-target.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { Service, ServiceHost } from '../service/service.ts';
import { type Orchestrator, parseEnsemble, showPath } from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { oneLine, printJson } from '../terminal/text.ts';
import { formatDistance } from '../terminal/times.ts';
import { deploymentOf, type DeploymentOptions } from './component-command.ts';

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

type Item = Awaited<ReturnType<Orchestrator['ensembles']['get']>>;

/** Creates ensembles from files, or replaces those that exist. All files are read before the first is stored. */
export async function putDefinitions(
  paths: readonly string[],
  options: DefinitionPutOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { label, message, commit, json } = options;
  const texts = (await Promise.all(paths.map((path) => readDefinitions(path, host.cwd)))).flat();
  const notes = Object.fromEntries(
    Object.entries({ label, message, commit }).filter(([, value]) => value !== undefined),
  );
  const made = await withService(
    options,
    host,
    async ({ ensembles }) => {
      const items: { readonly item: Item; readonly runs: string }[] = [];
      for (const text of texts) {
        const item = await storeOne(ensembles, text, notes);
        items.push({ item, runs: (await ensembles.traffic(item.name)).version });
      }
      return items;
    },
    { create: true, scripts: true },
  );
  if (json) output.print(`${printJson({ ensembles: made.map(({ item }) => item) })}\n`);
  else
    for (const { item, runs } of made) {
      output.say(`${output.colors.green('✓')} ${item.name} has version ${shownVersion(item)}\n`);
      // A fix that nothing runs is found now.
      if (runs !== 'latest') output.say(`  its traffic is set: see ensemble definition traffic ${item.name}\n`);
    }
  return 0;
}

/** The texts of a file, or of a folder with definitions. */
async function readDefinitions(path: string, cwd: string): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const target of await findTargets(cwd, path)) {
    if (target.kind === 'project')
      throw wrongUsage(`${path} is a project; name the files of definitions, or a folder that has nothing else`);
    const file = target.kind === 'file' ? target.path : `${target.directory}/${target.file}`;
    if (target.kind === 'member' && target.file.startsWith('agents/'))
      throw new CliError(`${showPath(cwd, file)} is an agent; \`definition put\` stores ensembles`);
    const text = await readFile(file, 'utf8');
    parseEnsemble(text);
    texts.push(text);
  }
  return texts;
}

async function storeOne(
  ensembles: Service['ensembles'],
  text: string,
  notes: Pick<DefinitionPutOptions, 'label' | 'message' | 'commit'>,
): Promise<Item> {
  const { name } = parseEnsemble(text);
  const known = await ensembles.find(name);
  return known ? ensembles.update(name, text, notes) : ensembles.create(text, notes);
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
  const made = await withService(
    options,
    host,
    ({ ensembles }) => ensembles.rollback(name, { to, ...(message !== undefined && { message }) }),
    { scripts: true },
  );
  if (json) output.print(`${printJson(made)}\n`);
  else output.say(`${output.colors.green('✓')} new executions of ${name} run version ${shownVersion(made)}\n`);
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
  const { version, split, splitBy, guard, rollout, counts = {}, shadow, shadowed, by, message } = now;
  const shares = split && Object.entries(split).map(([one, share]) => `${one} ${share} %`);
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
    `new executions of ${name} run ${shares ? shares.join(', ') : nameOf(version)}${splitBy === undefined ? '' : `, by ${splitBy}`}`,
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

function nameOf(version: string): string {
  return version === 'latest' ? 'the newest version' : version;
}

/** Such as `v2 (4f1c...)`. */
export function shownVersion({ version, label }: Pick<DefinitionVersion, 'version' | 'label'>): string {
  return label === undefined ? version : `${label} (${version})`;
}
