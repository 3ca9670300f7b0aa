/** The command line's only door to the library: what it opens, checks and runs comes from here. */

import { relative, resolve } from 'node:path';
import type { FileIssues } from '../check-project.ts';
import type { CompileHost } from '../engine/definition/compile-host.ts';
import type { DefinitionIssue } from '../engine/definition/definition-issue.ts';
import { parseEnsemble } from '../engine/definition/parse-ensemble.ts';
import { ensembleJsonSchema } from '../engine/definition/schema.ts';
import { messageOf } from '../engine/errors.ts';
import type { EnsembleDefinition } from '../engine/model/ensemble.ts';
import { createHandler, embeddedEngine, memoryStorage } from '../index.ts';
import { checkEnsemble } from '../load-definitions.ts';
import { type OpenedProject, openProject, type ProjectOptions } from '../load-project.ts';
import { nodeHttp, toNodeListener } from '../node.ts';
import { compileHost, createOrchestrator, type Orchestrator } from '../orchestrator.ts';
import { sqliteStorage } from '../sqlite.ts';

export { issueParts } from '../engine/definition/definition-issue.ts';
export { innerLists } from '../engine/definition/step-lists.ts';
export type { DefinitionIssue, FileIssues, OpenedProject, Orchestrator, ProjectOptions };
export { embeddedEngine, memoryStorage, parseEnsemble, sqliteStorage };
export type ExecutionEngine = NonNullable<ProjectOptions['engine']>;
export type Logger = NonNullable<ProjectOptions['logger']>;
export type Storage = NonNullable<ProjectOptions['storage']>;

/** Opens a project to run it: variables must have values. @throws NOT_FOUND */
export function openToRun(directory: string, given: ProjectOptions): Promise<OpenedProject> {
  return openProject(directory, given);
}

/**
 * Opens a project to check it: its files, and the whole that they make. Variables that the config lists need no value.
 *
 * @throws NOT_FOUND
 */
export async function openToCheck(directory: string): Promise<OpenedProject> {
  const opened = await openProject(directory, {}, { assumeVariables: true });
  if (opened.files.some(({ issues }) => issues.length > 0)) return opened;
  // What no single file shows, such as two triggers on one path, or an ensemble that the config holds.
  const config = opened.project.config?.file ?? '.';
  const fileOf = new Map(
    opened.files.flatMap(({ file, ensemble }) => (ensemble === undefined ? [] : [[ensemble, file]])),
  );
  const more: FileIssues[] = [];
  const add = (ensemble: string | undefined, key: 'issues' | 'warnings', issue: DefinitionIssue) => {
    const file = fileOf.get(ensemble ?? '') ?? config;
    more.push({ file, issues: [], warnings: [], [key]: [{ ...issue, source: file }] });
  };
  const warn = ({ ensemble, path }: { readonly ensemble?: string; readonly path?: string }, message = '') => {
    // The files' own are known.
    if (path !== undefined && !fileOf.has(ensemble ?? '')) add(ensemble, 'warnings', { path, message });
  };
  try {
    createOrchestrator({ ...opened.options, logger: { debug() {}, info() {}, error() {}, warn } });
  } catch (error) {
    const found = (error as { readonly details?: { readonly issues?: readonly DefinitionIssue[] } }).details?.issues;
    for (const issue of found ?? [{ path: '', message: messageOf(error) }]) add(issue.ensemble, 'issues', issue);
  }
  return { ...opened, files: joinFiles([...opened.files, ...more]) };
}

function joinFiles(all: readonly FileIssues[]): FileIssues[] {
  const files = new Map<string, FileIssues>();
  for (const entry of all) {
    const known = files.get(entry.file);
    const issues = [...(known?.issues ?? []), ...entry.issues];
    files.set(entry.file, { ...(known ?? entry), issues, warnings: [...(known?.warnings ?? []), ...entry.warnings] });
  }
  return [...files.values()];
}

/**
 * Opens a project for its store alone: what is wrong with its definitions is no matter then.
 *
 * @param parts - `all`: beside what its config says of the store, all that stored definitions are run with
 * @returns what is wrong with the config in `problem`
 * @throws NOT_FOUND
 */
export async function openAsGuest(
  directory: string,
  parts: 'store' | 'all',
): Promise<{
  readonly options: ProjectOptions;
  readonly problem?: { readonly file: string; readonly message: string };
}> {
  const { options, files } = await openProject(directory, {}, { assumeVariables: true });
  const config = /^ensemble\.config\.\w+$/;
  const file = files.find((one) => config.test(one.file) && one.issues.length > 0);
  const [issue] = file?.issues ?? [];
  if (file && issue) return { options: {}, problem: { file: file.file, message: issue.message } };
  if (parts === 'all') return { options: { ...options, ensembles: [], agents: [] } };
  const { brand, storage } = options;
  return { options: { ...(brand !== undefined && { brand }), ...(storage && { storage }) } };
}

/** A store in Postgres; what it takes is loaded now, its driver at the first use. @throws TypeError for what is no such address */
export async function postgresStorage(connectionString: string): Promise<Storage> {
  const postgres = await import('../postgres.ts');
  return postgres.postgresStorage({ connectionString });
}

/**
 * An orchestrator that runs one ensemble and leaves everything else alone: its executions are kept in memory, and nothing that
 * stands in the project's storage is taken up. Values and objects are the storage's own.
 */
export function startAlone({ storage, ...given }: ProjectOptions): Orchestrator {
  const options = { ...given, schedules: false };
  if (!storage) return startOrchestrator(options);
  const { kv, objects } = storage;
  const orchestrator = startOrchestrator({ ...options, bindings: { kv, objects, ...options.bindings } });
  const close: Orchestrator['close'] = async (given) => {
    await orchestrator.close(given);
    await storage.close();
  };
  return { ...orchestrator, close };
}

/** An orchestrator beside those that work on its storage: it reads, queues and cancels, and runs nothing. */
export function startGuest(options: ProjectOptions & { readonly storage: Storage }): Orchestrator {
  return startOrchestrator({ ...options, schedules: false, engine: embeddedEngine({ concurrency: 0 }) });
}

/** A project's API for `node:http`. */
export function nodeListener(
  orchestrator: Orchestrator,
  logger: Logger | undefined,
): ReturnType<typeof toNodeListener> {
  return toNodeListener(createHandler(orchestrator, logger ? { logger } : {}));
}

/** A definition in its current form. @throws INVALID_DEFINITION */
export function readDefinition(source: NonNullable<ProjectOptions['ensembles']>[number]): EnsembleDefinition {
  if (typeof source === 'string') return parseEnsemble(source);
  const { outputSchema, ...definition } = source as { readonly outputSchema?: unknown };
  return parseEnsemble(definition);
}

/** Problems of a definition against a project's scripts, agents and variables. */
export function checkInProject(text: string, file: string, options: ProjectOptions): FileIssues {
  return { file, ...checkEnsemble(text, compileHost(options), file) };
}

/** Problems of a definition that belongs to no project: what only its host can know is taken on trust. */
export function checkAlone(text: string, file: string): FileIssues {
  const host = compileHost({});
  const operations = new Map(host.operations);
  const code = operations.get('code');
  if (code) {
    const check: typeof code.check = (config) => {
      const { script } = config;
      return typeof script === 'string' && script.includes('${') ? (code.check?.(config) ?? []) : [];
    };
    operations.set('code', { ...code, check });
  }
  const lenient: CompileHost = { ...host, operations, lenient: true };
  return { file, ...checkEnsemble(text, lenient, file) };
}

/** Options that run one definition which belongs to no project. */
export function optionsAlone(text: string, given: ProjectOptions): ProjectOptions {
  return { http: nodeHttp(), ...given, ensembles: [text] };
}

/** @throws INVALID_DEFINITION, NOT_CONFIGURED */
export function startOrchestrator(options: ProjectOptions): Orchestrator {
  return createOrchestrator(options) as Orchestrator;
}

/** The JSON Schema of definition files. */
export function definitionSchema(): object {
  return ensembleJsonSchema();
}

/** The files of a project by the names that a user in `cwd` knows them by, and so in their issues. */
export function shownFrom(cwd: string, directory: string, files: readonly FileIssues[]): FileIssues[] {
  return files.map(({ file, issues, warnings }) => {
    const shown = showPath(cwd, resolve(directory, file));
    const placed = (issue: DefinitionIssue) => ({ ...issue, source: shown });
    return { file: shown, issues: issues.map(placed), warnings: warnings.map(placed) };
  });
}

/** A path as a user in `cwd` would write it. */
export function showPath(cwd: string, path: string): string {
  const short = relative(cwd, path);
  return (short.startsWith('..') && short.length > path.length ? path : short || '.').replaceAll('\\', '/');
}
