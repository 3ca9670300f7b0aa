/** `loadProject()`: a project folder to the options of `createOrchestrator`, with every problem of every file at once. */

import { nodeHttp } from './adapters/http/node-http.ts';
import { type Project, readProject } from './adapters/node/read-project.ts';
import { checkProject, type FileIssues } from './check-project.ts';
import { type DefinitionIssue, formatIssue } from './engine/definition/definition-issue.ts';
import { OrchestratorError } from './engine/errors.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import { checkOptions, type OrchestratorOptions } from './options.ts';

/** Options of `createOrchestrator` that come from a project, or are given beside it. Time is no part of a project. */
export type ProjectOptions = Omit<OrchestratorOptions, 'clock'>;

/** A project, its options, and what is wrong with it. */
export interface OpenedProject {
  readonly project: Project;
  readonly options: ProjectOptions;
  /** Every file that was read, in a stable order, with its problems. */
  readonly files: readonly FileIssues[];
}

/**
 * Reads a project folder: `ensembles/*.yaml`, `agents/*.yaml`, `scripts/**`, `ensemble.config.{js,mjs,ts}` and `.env`.
 * Scripts and config are imported, so their top-level code runs. Nothing of the process environment gets in but the names
 * that the config's `env` and `secrets` list. `http` is `nodeHttp()` unless the config says otherwise.
 *
 * @param directory - path (relative to the working directory) or `file:` URL of the folder
 * @param options - options of `createOrchestrator` to add: lists are joined, records are merged, and these win over the config.
 *   Given here, they take part in the check of the definitions
 * @throws INVALID_DEFINITION with the problems of all files in `details.issues` (each with its `source`); NOT_FOUND when there
 *   is no such folder or no ensemble in it
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
  const logger = opened.options.logger;
  for (const warning of opened.project.warnings) {
    const text = `${opened.project.directory}: ${warning}`;
    if (logger) logger.warn({}, text);
    else process.emitWarning(text);
  }
  const issues = opened.files.flatMap((file) => file.issues);
  if (issues.length > 0) throw invalidProject(opened.project.directory, issues);
  return opened.options;
}

/**
 * As {@link loadProject}, with the problems given back instead of thrown.
 *
 * @param assumeVariables - gives names that the config lists and that have no value here a made-up one, so that definitions can be
 *   checked where the values are not
 * @throws NOT_FOUND when there is no such folder or no ensemble in it
 */
export async function openProject(
  directory: string | URL,
  given: ProjectOptions = {},
  { assumeVariables = false } = {},
): Promise<OpenedProject> {
  const project = await readProject(directory);
  const config = (project.config?.value ?? {}) as ProjectOptions;
  const problems = [...project.problems, ...configProblems(project)];
  const usable = problems.some(({ file }) => file === project.config?.file) ? {} : config;
  const assumed = assumeVariables ? Object.fromEntries(project.absent.map((name) => [name, `value of ${name}`])) : {};
  const options = mergeOptions(project, usable, { ...given, env: { ...assumed, ...given.env } });
  if (project.ensembles.length === 0 && options.ensembles?.length === 0 && problems.length === 0) {
    throw new OrchestratorError(
      'NOT_FOUND',
      `${project.directory} holds no ensemble: expected .yaml files in its folder \`ensembles\``,
    );
  }
  const { agents, files } = checkProject({ ...project, problems }, options);
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
  if ('clock' in value) return refuse('`clock` is no option of a project; hand it to createOrchestrator');
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
  return {
    http: nodeHttp(),
    ...config,
    ...given,
    ...(functions && { functions }),
    ensembles: join(config.ensembles, given.ensembles),
    agents: join<AgentDefinition>(config.agents, given.agents),
    operations: join(config.operations, given.operations),
    scripts: { ...project.scripts, ...config.scripts, ...given.scripts },
    env: Object.fromEntries(values.filter(([name]) => !secretNames.has(name))),
    secrets: Object.fromEntries(values.filter(([name]) => secretNames.has(name))),
  };
}

const SHOWN_ISSUES = 20;

function invalidProject(directory: string, issues: readonly DefinitionIssue[]): OrchestratorError {
  const count = issues.length === 1 ? '1 problem' : `${issues.length} problems`;
  const shown = issues.slice(0, SHOWN_ISSUES).map(formatIssue).join('\n\n');
  const rest = issues.length > SHOWN_ISSUES ? `\n\n... and ${issues.length - SHOWN_ISSUES} more in details.issues` : '';
  return new OrchestratorError('INVALID_DEFINITION', `${directory} has ${count}:\n\n${shown}${rest}`, {
    details: { issues },
  });
}
