/** Reads a project folder: definitions as text, scripts and config as modules, variables by name. */

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMPONENTS_FILE, parseComponents } from '../adapters/components/git/components-file.ts';
import { messageOf, OrchestratorError } from '../engine/base/errors.ts';
import { importDefault } from './import-default.ts';
import { isDefinition, isFile, isFolder, listFiles } from './list-files.ts';
import { type ProjectProblem, type ProjectScripts, readScripts } from './read-scripts.ts';
import { type ProjectVariables, readVariables } from './read-variables.ts';

export interface TextFile {
  /** Relative to the project folder, with `/`. */
  readonly file: string;
  readonly text: string;
}

/** The content of a project folder. Paths are relative to the folder, with `/`. */
export interface Project extends ProjectVariables {
  /** Absolute. */
  readonly directory: string;
  readonly ensembles: readonly TextFile[];
  readonly agents: readonly TextFile[];
  readonly scripts: ProjectScripts['scripts'];
  readonly scriptFiles: readonly string[];
  readonly config: { readonly file: string; readonly value: object } | undefined;
  /** Whether there is a `components.yaml`: the components are in the repository of the project. */
  readonly hasComponents: boolean;
  /** Names of secrets in the config, with or without a value. */
  readonly secretNames: readonly string[];
  /** Problems of scripts and config. The definitions are not checked here. */
  readonly problems: readonly ProjectProblem[];
}

const CONFIG_FILES = ['ensemble.config.js', 'ensemble.config.mjs', 'ensemble.config.ts'];

/**
 * Reads a project folder. Scripts and config are imported, so their top-level code runs.
 *
 * @param directory - path (relative to the working directory) or `file:` URL
 * @param processEnv - the environment of the process. Only the variables that the config lists are read
 * @param query - added to the URLs of scripts and config, so that they are loaded again
 * @throws NOT_FOUND if the folder does not exist
 */
export async function readProject(
  directory: string | URL,
  processEnv: Readonly<Record<string, string | undefined>>,
  query: string,
): Promise<Project> {
  const root = resolve(typeof directory === 'string' ? directory : fileURLToPath(directory));
  if (!(await isFolder(root))) throw new OrchestratorError('NOT_FOUND', `there is no folder ${root}`);
  const { config, names, problems } = await readConfig(root, query);
  const scripts = await readScripts(root, query);
  const components = await readComponents(root);
  return {
    directory: root,
    ensembles: await readTexts(root, 'ensembles'),
    agents: await readTexts(root, 'agents'),
    scripts: scripts.scripts,
    scriptFiles: scripts.files,
    config,
    hasComponents: components !== undefined,
    secretNames: names.secrets,
    ...(await readVariables(root, names, processEnv)),
    problems: [...problems, ...scripts.problems, ...(components ?? [])],
  };
}

/** @returns its problems; undefined if the project has none */
async function readComponents(root: string): Promise<readonly ProjectProblem[] | undefined> {
  if (!(await isFile(join(root, COMPONENTS_FILE)))) return undefined;
  try {
    parseComponents(await readFile(join(root, COMPONENTS_FILE), 'utf8'), COMPONENTS_FILE);
    return [];
  } catch (error) {
    return [{ file: COMPONENTS_FILE, message: messageOf(error).replace(/^components\.yaml:? /, '') }];
  }
}

async function readTexts(root: string, folder: string): Promise<TextFile[]> {
  const names = await listFiles(join(root, folder), isDefinition);
  return Promise.all(
    names.map(async (name) => ({ file: `${folder}/${name}`, text: await readFile(join(root, folder, name), 'utf8') })),
  );
}

async function readConfig(root: string, query: string) {
  const none = { config: undefined, names: { env: [], secrets: [] } };
  const found: string[] = [];
  for (const file of CONFIG_FILES) if (await isFile(join(root, file))) found.push(file);
  const [file, second] = found;
  if (file === undefined) return { ...none, problems: [] };
  const refuse = (message: string) => ({ ...none, problems: [{ file, message }] });
  if (second !== undefined) return refuse(`exists in addition to ${second}; keep one of them`);
  const imported = await importDefault(root, file, query);
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
      message: `\`${key}\` must be a list of the names of variables, such as ['API_URL']; their values are in \`.env\` or in the process`,
    });
  }
  const names = { env: isNameList(env) ? env : [], secrets: isNameList(secrets) ? secrets : [] };
  return { config: { file, value: rest }, names, problems };
}

function isNameList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '');
}
