/** Finds and checks what `ensemble run` is to run. */

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CliError } from './cli-error.ts';
import { findFile, isPath, requireProject } from './find-target.ts';
import type { Output } from './output.ts';
import { printIssue } from './print-issues.ts';
import * as start from './start.ts';
import { count } from './text.ts';

/** What is to be run. */
export interface FoundRun {
  readonly name: string;
  readonly options: start.ProjectOptions;
}

/**
 * Opens what an argument of `run` means: a name in a project, a file of one, or a file alone.
 *
 * @returns undefined when there are problems, which are printed then
 * @throws CliError, NOT_FOUND
 */
export async function openRun(
  target: string,
  given: { readonly env: Readonly<Record<string, string>>; readonly logger: start.Logger },
  dir: string | undefined,
  output: Output,
  cwd: string,
): Promise<FoundRun | undefined> {
  const refuse = (issues: readonly start.DefinitionIssue[]) => {
    for (const issue of issues) output.say(`${printIssue(issue, output.colors)}\n\n`);
    output.say(`${output.colors.red('✗')} ${count(issues.length, 'problem')}; nothing was run\n`);
    return undefined;
  };
  const openProject = async (directory: string) => {
    const { project, options, files } = await start.openToRun(directory, { env: given.env });
    const shown = start.shownFrom(cwd, directory, files);
    for (const warning of project.warnings) output.say(`${output.colors.yellow('warning:')} ${warning}\n`);
    return { options: { logger: given.logger, ...options }, issues: shown.flatMap(({ issues }) => issues) };
  };
  if (!isPath(target)) {
    const { options, issues } = await openProject(await requireProject(cwd, dir));
    return issues.length > 0 ? refuse(issues) : { name: target, options };
  }
  const file = await findFile(cwd, target);
  const path = file.kind === 'file' ? file.path : resolve(file.directory, file.file);
  const text = await readFile(path, 'utf8');
  const shown = start.showPath(cwd, path);
  const directory =
    dir !== undefined ? await requireProject(cwd, dir) : file.kind === 'member' ? file.directory : undefined;
  if (file.kind === 'member' && file.file.startsWith('agents/'))
    throw new CliError(`${shown} is an agent; run an ensemble that names it`);
  if (directory === undefined) {
    const options = start.optionsAlone(text, given);
    const { issues } = start.checkInProject(text, shown, options);
    return issues.length > 0 ? refuse(issues) : { name: start.parseEnsemble(text).name, options };
  }
  const { options, issues } = await openProject(directory);
  if (issues.length > 0) return refuse(issues);
  const own = start.checkInProject(text, shown, options).issues;
  if (own.length > 0) return refuse(own);
  const { name } = start.parseEnsemble(text);
  const others = file.kind === 'member' && directory === file.directory ? options.ensembles : [text];
  return { name, options: { ...options, ensembles: others } };
}
