/** Finds and checks the definition that `ensemble graph` draws. */

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { AgentDefinition, EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import * as start from '../start.ts';
import { CliError } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { count } from '../terminal/text.ts';
import { findFile, isPath, requireProject } from './find-target.ts';
import { printIssue } from './print-issues.ts';

export interface FoundDefinition {
  readonly definition: EnsembleDefinition;
  /** The shared agents of the project. */
  readonly agents: readonly AgentDefinition[];
}

/**
 * @param target - the name of an ensemble of the project, or a file
 * @param dir - the project
 * @returns undefined when the definition has problems, which this function prints
 * @throws CliError when the definition does not exist
 */
export async function findDefinition(
  target: string,
  dir: string | undefined,
  output: Output,
  cwd: string,
): Promise<FoundDefinition | undefined> {
  if (!isPath(target)) return findByName(target, await requireProject(cwd, dir), output, cwd);
  const file = await findFile(cwd, target);
  const path = file.kind === 'file' ? file.path : resolve(file.directory, file.file);
  const shown = start.showPath(cwd, path);
  if (file.kind === 'member' && file.file.startsWith('agents/'))
    throw new CliError(`${shown} is an agent, which has no flow; name an ensemble`);
  const text = await readFile(path, 'utf8');
  const project = dir !== undefined ? await requireProject(cwd, dir) : file.kind === 'member' && file.directory;
  if (project === false) return read(text, start.checkAlone(text, shown).issues, [], output);
  const { options } = await start.openToDraw(project);
  return read(text, start.checkToDraw(text, shown, options).issues, options.agents, output);
}

async function findByName(
  name: string,
  directory: string,
  output: Output,
  cwd: string,
): Promise<FoundDefinition | undefined> {
  const { project, options, files } = await start.openToDraw(directory);
  const issuesOf = (source: Source) => {
    const file = project.ensembles.find(({ text }) => text === source)?.file;
    return start
      .shownFrom(
        cwd,
        directory,
        files.filter((entry) => entry.file === file),
      )
      .flatMap(({ issues }) => issues);
  };
  const sources = options.ensembles ?? [];
  const wanted = sources.find((source) => nameOf(source) === name);
  if (wanted !== undefined) return read(wanted, issuesOf(wanted), options.agents, output);
  const names = sources.flatMap((source) => nameOf(source) ?? []).sort();
  const near = suggestName(name, names);
  const listed = `${names.slice(0, 10).join(', ')}${names.length > 10 ? ', ...' : ''}`;
  throw new CliError(
    `there is no ensemble \`${name}\`${near === undefined ? '' : `; did you mean \`${near}\`?`}\nThis project has: ${listed}`,
  );
}

/** The name of a definition, also when the definition has problems. */
function nameOf(source: Source): string | undefined {
  if (typeof source !== 'string') return source.name;
  return /^name:[ \t]*(?:(["'])(.*?)\1|([^\s#]+))/m.exec(source)?.slice(2).find(Boolean);
}

type Source = NonNullable<start.ProjectOptions['ensembles']>[number];

function read(
  source: Source,
  issues: readonly start.DefinitionIssue[],
  agents: start.ProjectOptions['agents'],
  { say, colors }: Output,
): FoundDefinition | undefined {
  if (issues.length === 0)
    return { definition: start.readDefinition(source), agents: (agents ?? []) as readonly AgentDefinition[] };
  for (const issue of issues) say(`${printIssue(issue, colors)}\n\n`);
  say(`${colors.red('✗')} ${count(issues.length, 'problem')}; nothing was drawn\n`);
  return undefined;
}
