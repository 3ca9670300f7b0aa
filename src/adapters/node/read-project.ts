/** Reads a project folder as it is on disk: definitions as text, scripts and config as modules, variables by name. */

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OrchestratorError } from '../../engine/errors.ts';
import { importDefault } from './import-default.ts';
import { isFile, isFolder, isYaml, listFiles } from './list-files.ts';
import type { ProjectProblem } from './project-problem.ts';
import { type ProjectScripts, readScripts } from './read-scripts.ts';
import { type ProjectVariables, readVariables } from './read-variables.ts';

export interface TextFile {
  /** Relative to the project folder, with `/`. */
  readonly file: string;
  readonly text: string;
}

/** A project folder as it was found. Paths are relative to it, with `/`. */
export interface Project extends ProjectVariables {
  /** Absolute. */
  readonly directory: string;
  readonly ensembles: readonly TextFile[];
  readonly agents: readonly TextFile[];
  readonly scripts: ProjectScripts['scripts'];
  readonly scriptFiles: readonly string[];
  readonly config: { readonly file: string; readonly value: object } | undefined;
  /** Names that the config lists as secrets, with or without a value. */
  readonly secretNames: readonly string[];
  /** What is wrong with scripts and config; the definitions are not checked here. */
  readonly problems: readonly ProjectProblem[];
  /** What is there and isn't used, for people. */
  readonly warnings: readonly string[];
}

const CONFIG_FILES = ['ensemble.config.js', 'ensemble.config.mjs', 'ensemble.config.ts'];
// Folders of the project layout that no operation of this version reads.
const UNUSED = ['prompts', 'templates', 'queries', 'configs', 'components.yaml'];

/**
 * Reads a project folder. Its scripts and its config are imported, so that their top-level code runs.
 *
 * @param directory - path (relative to the working directory) or `file:` URL
 * @param processEnv - the process environment; only names that the config lists are read
 * @throws NOT_FOUND when there is no such folder
 */
export async function readProject(
  directory: string | URL,
  processEnv: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Project> {
  const root = resolve(typeof directory === 'string' ? directory : fileURLToPath(directory));
  if (!(await isFolder(root))) throw new OrchestratorError('NOT_FOUND', `there is no folder ${root}`);
  const { config, names, problems } = await readConfig(root);
  const scripts = await readScripts(root);
  return {
    directory: root,
    ensembles: await readTexts(root, 'ensembles'),
    agents: await readTexts(root, 'agents'),
    scripts: scripts.scripts,
    scriptFiles: scripts.files,
    config,
    secretNames: names.secrets,
    ...(await readVariables(root, names, processEnv)),
    problems: [...problems, ...scripts.problems],
    warnings: await findUnused(root),
  };
}

async function readTexts(root: string, folder: string): Promise<TextFile[]> {
  const names = await listFiles(join(root, folder), isYaml);
  return Promise.all(
    names.map(async (name) => ({ file: `${folder}/${name}`, text: await readFile(join(root, folder, name), 'utf8') })),
  );
}

async function readConfig(root: string) {
  const none = { config: undefined, names: { env: [], secrets: [] } };
  const found: string[] = [];
  for (const file of CONFIG_FILES) if (await isFile(join(root, file))) found.push(file);
  const [file, second] = found;
  if (file === undefined) return { ...none, problems: [] };
  const refuse = (message: string) => ({ ...none, problems: [{ file, message }] });
  if (second !== undefined) return refuse(`stands beside ${second}; keep one of them`);
  const imported = await importDefault(root, file);
  if ('problem' in imported) return refuse(imported.problem);
  const { value } = imported;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('has no object as its default export; write `export default defineConfig({ ... })`');
  }
  const { env = [], secrets = [], ...rest } = value as { readonly env?: unknown; readonly secrets?: unknown };
  const problems: ProjectProblem[] = [];
  for (const [key, list] of Object.entries({ env, secrets })) {
    if (isNameList(list)) continue;
    problems.push({
      file,
      message: `\`${key}\` must be a list of the names of variables, such as ['API_URL']; their values stand in \`.env\` or in the process`,
    });
  }
  const names = { env: isNameList(env) ? env : [], secrets: isNameList(secrets) ? secrets : [] };
  return { config: { file, value: rest }, names, problems };
}

function isNameList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '');
}

async function findUnused(root: string): Promise<string[]> {
  const warnings: string[] = [];
  for (const name of UNUSED) {
    const path = join(root, name);
    if ((await isFile(path)) || (await isFolder(path))) warnings.push(`\`${name}\` is not used by this version`);
  }
  return warnings;
}
