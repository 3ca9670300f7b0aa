/** Finds and checks the ensemble that `ensemble run` runs. */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { openStore, ownStore } from '../service/open-store.ts';
import * as start from '../start.ts';
import { CliError } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { count } from '../terminal/text.ts';
import { findFile, isPath, requireProject } from './find-target.ts';
import { openApp } from './open-app.ts';
import { printIssue } from './print-issues.ts';

/** An ensemble that can run. */
export interface FoundRun {
  readonly name: string;
  readonly options: start.ProjectOptions;
  /** The project's own store, whose components are used. It must be closed. */
  readonly store?: start.Storage;
}

/**
 * Opens the argument of `run`: the name of an ensemble in a project, a file of a project, or a file outside projects.
 *
 * @returns undefined when there are problems, which this function prints
 * @throws CliError, NOT_FOUND
 */
export async function openRun(
  target: string,
  given: {
    readonly env: Readonly<Record<string, string>>;
    readonly logger: start.Logger;
    /** The module of `--app`. */
    readonly app?: string | undefined;
  },
  dir: string | undefined,
  output: Output,
  cwd: string,
): Promise<FoundRun | undefined> {
  let help: string | undefined;
  const refuse = (issues: readonly start.DefinitionIssue[]) => {
    for (const issue of issues) output.say(`${printIssue(issue, output.colors)}\n\n`);
    if (help) output.say(`help: ${help}\n`);
    output.say(`${output.colors.red('✗')} ${count(issues.length, 'problem')}; nothing was run\n`);
    return undefined;
  };
  const openProject = async (directory: string) => {
    const app = given.app === undefined ? {} : await openApp(given.app, cwd, directory);
    const opened = await start.openToRun(directory, { ...app, env: { ...app.env, ...given.env } });
    const { project, options, files } = opened;
    help = given.app === undefined ? start.helpForOptions(opened, `ensemble run ${target}`) : undefined;
    const shown = start.shownFrom(cwd, directory, files);
    const issues = shown.flatMap((one) => one.issues);
    return { options: { logger: given.logger, ...options }, issues, absent: project.absent };
  };
  if (!isPath(target)) {
    const inCode = given.app !== undefined && dir === undefined;
    const directory = inCode ? cwd : await requireProject(cwd, dir);
    const { options, issues } = await openProject(directory);
    if (issues.length > 0) return refuse(issues);
    return { name: target, ...(await withComponents(options, directory)) };
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
    const { app, env, logger } = given;
    const ofApp = app === undefined ? {} : await openApp(app, cwd, dirname(path));
    const options = start.optionsAlone(text, { ...ofApp, env: { ...ofApp.env, ...env }, logger });
    const { issues } = start.checkToRunAlone(text, shown, options);
    return issues.length > 0 ? refuse(issues) : { name: start.parseEnsemble(text).name, options };
  }
  const { options, issues, absent } = await openProject(directory);
  if (issues.length > 0) return refuse(issues);
  const own = start.checkInProject(text, shown, options, absent).issues;
  if (own.length > 0) return refuse(own);
  const { name } = start.parseEnsemble(text);
  const others = file.kind === 'member' && directory === file.directory ? options.ensembles : [text];
  return { name, ...(await withComponents({ ...options, ensembles: others }, directory)) };
}

/** Adds the components of the project's own store, if there is one and nothing else has them. */
async function withComponents(options: start.ProjectOptions, directory: string): Promise<Omit<FoundRun, 'name'>> {
  const own = ownStore(directory);
  if (options.components || options.storage || own.kind !== 'sqlite' || !existsSync(own.path)) return { options };
  const store = await openStore(own);
  return { options: { ...options, components: start.componentsOf(store) }, store };
}
