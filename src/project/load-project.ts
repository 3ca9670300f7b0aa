/** `loadProject()`: turns a project folder into options of `createOrchestrator`, and reports the problems of all files at once. */

import { gitComponents } from '../adapters/components/git/git-components.ts';
import { nodeHttp } from '../adapters/http/node-http.ts';
import { OrchestratorError } from '../engine/base/errors.ts';
import { assumedValue } from '../engine/definition/compile/config/setting-text.ts';
import { withIssues } from '../engine/definition/read/parse-ensemble.ts';
import { checkOptions, type OrchestratorOptions } from '../orchestrator/options/options.ts';
import { checkProject, type FileIssues } from './check-project.ts';
import { type Project, readProject } from './read-project.ts';

/** Options of `createOrchestrator` that a project has, or that are added to it. A project has no clock. */
export type ProjectOptions = Omit<OrchestratorOptions, 'clock'>;

/** A project, its options and its problems. */
export interface OpenedProject {
  readonly project: Project;
  readonly options: ProjectOptions;
  /** All files that were read, in a stable order, with their problems. */
  readonly files: readonly FileIssues[];
}

/**
 * Reads a project folder: `ensembles/*.yaml`, `agents/*.yaml`, `scripts/**`, `ensemble.config.{js,mjs,ts}` and `.env`.
 * With a `components.yaml`, its components are those of its git repository.
 * Scripts and config are imported, so their top-level code runs. From the environment of the process, only the variables are read
 * that `env` and `secrets` of the config list. `http` is `nodeHttp()`, unless the config has another one.
 *
 * @param directory - path (relative to the working directory) or `file:` URL of the folder
 * @param options - options of `createOrchestrator` to add. Lists are joined and records are merged. These options override the config,
 *   and the check of the definitions uses them
 * @throws INVALID_DEFINITION with the problems of all files in `details.issues` (each with its `source`); NOT_FOUND if the folder
 *   does not exist or has no ensemble
 *
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { loadProject } from 'ensemble-orchestrator/node';
 *
 * const orchestrator = createOrchestrator(await loadProject('./my-project'));
 * ```
 */
export async function loadProject(directory: string | URL, options: ProjectOptions = {}): Promise<ProjectOptions> {
  const opened = await openProject(directory, options);
  const issues = opened.files.flatMap((file) => file.issues);
  if (issues.length > 0) throw withIssues(`${opened.project.directory} has`, issues);
  return opened.options;
}

/**
 * Like {@link loadProject}, but returns the problems instead of throwing them.
 *
 * @param assumeVariables - accepts each variable that the config lists and that has no value, so that definitions can be checked on a
 *   machine without the values
 * @param lenient - accepts references to what the host has not configured, such as a mail sender or a variable
 * @param query - added to the URLs of scripts and config, so that they are loaded again
 * @throws NOT_FOUND if the folder does not exist or has no ensemble
 */
export async function openProject(
  directory: string | URL,
  given: ProjectOptions = {},
  { assumeVariables = false, lenient = false, query = '' } = {},
): Promise<OpenedProject> {
  const project = await readProject(directory, process.env, query);
  const config = (project.config?.value ?? {}) as ProjectOptions;
  const problems = [...project.problems, ...configProblems(project)];
  const usable = problems.some(({ file }) => file === project.config?.file) ? {} : config;
  const assumed = assumeVariables ? Object.fromEntries(project.absent.map((name) => [name, assumedValue(name)])) : {};
  const options = mergeOptions(project, usable, { ...given, env: { ...assumed, ...given.env } });
  if (project.ensembles.length === 0 && options.ensembles?.length === 0 && problems.length === 0) {
    throw new OrchestratorError(
      'NOT_FOUND',
      `${project.directory} has no ensemble: expected .yaml files in its folder \`ensembles\``,
    );
  }
  const { agents, files } = checkProject({ ...project, problems }, options, lenient);
  const texts = project.ensembles.map(({ text }) => text);
  return {
    project,
    files,
    options: {
      ...options,
      ensembles: [...texts, ...(options.ensembles ?? [])],
      agents: [...agents, ...(options.agents ?? [])],
    },
  };
}

function configProblems({ config, scripts }: Project) {
  if (!config) return [];
  const { file, value } = config;
  const refuse = (message: string) => [{ file, message }];
  if ('clock' in value) return refuse('`clock` is not an option of a project; pass it to createOrchestrator');
  try {
    checkOptions(value);
  } catch (error) {
    return refuse((error as Error).message.replace(/^createOrchestrator: /, ''));
  }
  const twice = Object.keys((value as ProjectOptions).scripts ?? {}).find((name) => Object.hasOwn(scripts, name));
  return twice === undefined ? [] : refuse(`script \`${twice}\` is in the folder \`scripts\` too; keep one of them`);
}

function mergeOptions(project: Project, config: ProjectOptions, given: ProjectOptions): ProjectOptions {
  const join = <T>(a: readonly T[] | undefined, b: readonly T[] | undefined): T[] => [...(a ?? []), ...(b ?? [])];
  const secretNames = new Set([...Object.keys(project.secrets), ...Object.keys(given.secrets ?? {})]);
  for (const name of project.secretNames) secretNames.add(name);
  const values = Object.entries({ ...project.env, ...project.secrets, ...given.env, ...given.secrets });
  const functions = config.functions || given.functions ? { ...config.functions, ...given.functions } : undefined;
  const mcpServers = config.mcpServers || given.mcpServers ? { ...config.mcpServers, ...given.mcpServers } : undefined;
  const models = config.models || given.models ? { ...config.models, ...given.models } : undefined;
  const mail = config.mail || given.mail ? { ...config.mail, ...given.mail } : undefined;
  const sms = config.sms || given.sms ? { ...config.sms, ...given.sms } : undefined;
  return {
    http: nodeHttp(),
    ...(project.hasComponents && { components: gitComponents({ path: project.directory }) }),
    ...config,
    ...given,
    ...(functions && { functions }),
    ...(mcpServers && { mcpServers }),
    ...(models && { models }),
    ...(mail && { mail }),
    ...(sms && { sms }),
    ensembles: join(config.ensembles, given.ensembles),
    agents: join(config.agents, given.agents),
    operations: join(config.operations, given.operations),
    scripts: { ...project.scripts, ...config.scripts, ...given.scripts },
    env: Object.fromEntries(values.filter(([name]) => !secretNames.has(name))),
    secrets: Object.fromEntries(values.filter(([name]) => secretNames.has(name))),
  };
}
