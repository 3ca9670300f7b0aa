/** `ensemble validate`: prints every problem of the named files and projects. */

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { findTargets, requireProject, type Target } from '../project/find-target.ts';
import { openApp } from '../project/open-app.ts';
import { printIssue, printTypes, summarize } from '../project/print-issues.ts';
import {
  checkAlone,
  checkInProject,
  type FileIssues,
  helpForOptions,
  type OpenedProject,
  openToCheck,
  type ProjectOptions,
  shownFrom,
  showPath,
} from '../start.ts';
import { CliError } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { count, printJson } from '../terminal/text.ts';

export interface ValidateOptions {
  readonly dir?: string;
  readonly json?: boolean;
  /** Also prints the types of each ensemble. */
  readonly types?: boolean;
  /** A module with the options of an app. */
  readonly app?: string;
}

/** @returns the exit code */
export async function validate(
  paths: readonly string[],
  options: ValidateOptions,
  output: Output,
  cwd: string,
): Promise<number> {
  const { app } = options;
  const projects = createProjects(async (directory) => (app === undefined ? undefined : openApp(app, cwd, directory)));
  const targets: Target[] = [];
  for (const path of paths) targets.push(...(await findTargets(cwd, path)));
  // An app may have all of its definitions in code.
  const isInCode = app !== undefined && options.dir === undefined;
  if (paths.length === 0)
    targets.push({ kind: 'project', directory: isInCode ? cwd : await requireProject(cwd, options.dir) });
  const base = options.dir !== undefined && paths.length > 0 ? await requireProject(cwd, options.dir) : undefined;

  const files = new Map<string, FileIssues>();
  for (const target of targets)
    for (const entry of await check(target, base, projects, cwd)) files.set(entry.file, entry);
  const found = [...files.values()];
  const failed = found.some(({ issues }) => issues.length > 0);
  if (options.json) {
    const files = found.map(({ file, issues, warnings, types }) => ({
      file,
      issues,
      warnings,
      ...(options.types && types && { types: types() }),
    }));
    output.print(`${printJson({ files })}\n`);
    return failed ? 1 : 0;
  }
  const { colors } = output;
  for (const { issues } of found) for (const issue of issues) output.say(`${printIssue(issue, colors)}\n\n`);
  const warnings = found.flatMap((file) => file.warnings);
  for (const warning of warnings) output.say(`${colors.yellow('warning:')} ${printIssue(warning, colors)}\n\n`);
  for (const warning of await projects.warnings(cwd)) output.say(`${colors.yellow('warning:')} ${warning}\n`);
  if (options.types)
    for (const { file, types } of found) if (types) output.print(`${printTypes(file, types(), colors)}\n\n`);
  for (const help of app === undefined ? await projects.helps() : []) output.say(`help: ${help}\n`);
  if (failed) output.say(`${colors.red('✗')} ${summarize(found)}\n`);
  else output.print(`✓ ${summarize(found)}${app === undefined ? '' : await projects.inCode()}\n`);
  return failed ? 1 : 0;
}

async function check(target: Target, base: string | undefined, projects: Projects, cwd: string): Promise<FileIssues[]> {
  if (target.kind === 'project') {
    const { files } = await projects.open(target.directory);
    return shownFrom(cwd, target.directory, files);
  }
  if (target.kind === 'member' && (base === undefined || base === target.directory)) {
    const { files } = await projects.open(target.directory);
    // Leaves out problems of other definitions, but not of the config and scripts, which the check needs.
    const wanted = files.filter(
      ({ file, issues }) => file === target.file || (issues.length > 0 && !/\.ya?ml$/.test(file)),
    );
    return shownFrom(cwd, target.directory, wanted);
  }
  const path = target.kind === 'file' ? target.path : resolve(target.directory, target.file);
  const file = showPath(cwd, path);
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new CliError(`${file} can't be read: ${error.message}`);
  });
  const known = base === undefined ? await projects.appFor(dirname(path)) : (await projects.open(base)).options;
  return [known === undefined ? checkAlone(text, file) : checkInProject(text, file, known)];
}

interface Projects {
  /** The options of `--app`. */
  appFor(directory: string): Promise<ProjectOptions | undefined>;
  open(directory: string): Promise<OpenedProject>;
  warnings(cwd: string): Promise<string[]>;
  /** How many ensembles of `--app` were checked, in words. */
  inCode(): Promise<string>;
  /** What to do about problems of folders without a config. */
  helps(): Promise<readonly string[]>;
}

// A project is read once, however many of its files are named.
function createProjects(appFor: Projects['appFor']): Projects {
  const opened = new Map<string, Promise<OpenedProject>>();
  return {
    appFor,
    open(directory) {
      const found = opened.get(directory) ?? appFor(directory).then((app) => openToCheck(directory, app));
      opened.set(directory, found);
      return found;
    },
    async inCode() {
      const all = await Promise.all(opened.values());
      const own = all.map(({ options, project }) => (options.ensembles ?? []).length - project.ensembles.length);
      const number = own.reduce((sum, one) => sum + one, 0);
      return number === 0 ? '' : `; ${count(number, 'ensemble')} in code`;
    },
    async helps() {
      const all = await Promise.all(opened.values());
      return [...new Set(all.flatMap((one) => helpForOptions(one, 'ensemble validate') ?? []))];
    },
    async warnings(cwd) {
      const lists = [...opened].map(async ([directory, opening]) => {
        const { project } = await opening;
        const absent = project.absent.map(
          (name) =>
            `${project.config?.file} names the variable \`${name}\`, which is not set here; \`run\` and \`serve\` need it`,
        );
        return absent.map((text) => (directory === cwd ? text : `${showPath(cwd, directory)}: ${text}`));
      });
      return (await Promise.all(lists)).flat();
    },
  };
}
