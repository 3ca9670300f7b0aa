/** The only module of the command line that imports the library: it opens, checks and runs projects and definitions. */

import { existsSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { createTokenValue, isTokenValue, tokenDigest } from '../engine/access/rules/token-value.ts';
import { type DefinitionIssue, isOrchestratorError, messageOf } from '../engine/base/errors.ts';
import type { CompileHost } from '../engine/definition/compile/triggers/compile-host.ts';
import { parseEnsemble, withIssues } from '../engine/definition/read/parse-ensemble.ts';
import type { EnsembleDefinition } from '../engine/ensemble/ensemble.ts';
import { MASKING, type ServedDependencies } from '../engine/host/masking.port.ts';
import { signAsSender } from '../engine/signing/sign-as-sender.ts';
import type { Webhook } from '../engine/webhook/webhook.ts';
import { type GitComponents, gitComponents } from '../entries/git.ts';
import { nodeHttp, toNodeListener } from '../entries/node.ts';
import { sqliteStorage } from '../entries/sqlite.ts';
import { createTestOrchestrator } from '../entries/testing.ts';
import { createHandler, embeddedEngine, memoryStorage, systemClock } from '../index.ts';
import { checkUses } from '../orchestrator/components/check-uses.ts';
import { componentsIn } from '../orchestrator/components/create-component-parts.ts';
import { compileHost, createOrchestrator, type Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { checkEnsemble, loadEnsembles } from '../orchestrator/definitions/load-definitions.ts';
import { sharedSecrets } from '../orchestrator/webhooks/shared-secrets.ts';
import { type FileIssues, nameIn, unsetVariable } from '../project/check-project.ts';
import { type OpenedProject, openProject, type ProjectOptions } from '../project/load-project.ts';
import { openTests } from '../test-files/open-tests.ts';
import type { CreateForTest } from '../test-files/run-test.ts';
import type { ReadTests, TextOfFile } from '../test-files/run-test-files.ts';
import { definitionSchema, type ProjectNames } from './schema/definition-schema.ts';

export { issueParts } from '../engine/definition/source/definition-issue.ts';
export { verifySignature } from '../engine/signing/sign-payload.ts';
export { type CheckedExecution, createLiveCheck, type LiveCheck } from '../orchestrator/change/check-live.ts';
export { awaitedSignals } from '../orchestrator/signals/signal-forms.ts';
export { isDefinition, isTestFile } from '../project/list-files.ts';
export { type LoadedDefinition, loadDefinitions } from '../project/load-definitions.ts';
export { readApp } from '../project/read-app.ts';
export { testFilesOf } from '../test-files/open-tests.ts';
export { childrenOf, recordTest } from '../test-files/record-test.ts';
export { describeWay } from '../test-files/run-test.ts';
export { isPassed, runTestFiles, type TestReport } from '../test-files/run-test-files.ts';
export type {
  DefinitionIssue,
  FileIssues,
  GitComponents,
  OpenedProject,
  Orchestrator,
  ProjectOptions,
  ReadTests,
  TextOfFile,
};
export { embeddedEngine, memoryStorage, parseEnsemble, signAsSender, sqliteStorage };
export type ExecutionEngine = NonNullable<ProjectOptions['engine']>;
export type Logger = Exclude<ProjectOptions['logger'], false | undefined>;
export type Storage = NonNullable<ProjectOptions['storage']>;

/** Opens a project to run it: variables must have values. @param query - see `openProject` @throws NOT_FOUND */
export function openToRun(directory: string, given: ProjectOptions, query = ''): Promise<OpenedProject> {
  return openProject(directory, given, { query });
}

/**
 * Opens a project to check each file, and the project as a whole. Variables that the config lists need no value.
 *
 * @param app - the options of the module of `--app`
 * @throws NOT_FOUND
 */
export async function openToCheck(directory: string, app: ProjectOptions = {}): Promise<OpenedProject> {
  const opened = await openProject(directory, app, { assumeVariables: true });
  if (opened.files.some(({ issues }) => issues.length > 0)) return opened;
  // Problems that no single file shows, such as two triggers on one path, or an ensemble in the config.
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
    // The warnings of files are known already.
    if (path !== undefined && !fileOf.has(ensemble ?? '')) add(ensemble, 'warnings', { path, message });
  };
  try {
    const { components } = createOrchestrator({
      ...opened.options,
      logger: { debug() {}, info() {}, error() {}, warn },
    });
    // Those of a store are known to the processes that use it.
    if (opened.options.components)
      for (const { compiled } of loadEnsembles(opened.options.ensembles ?? [], compileHost(opened.options)).values())
        for (const { path, message, isMissing } of await checkUses(compiled.components, components))
          add(compiled.name, isMissing ? 'warnings' : 'issues', { path, message });
  } catch (error) {
    const found = (error as { readonly details?: { readonly issues?: readonly DefinitionIssue[] } }).details?.issues;
    for (const issue of found ?? [{ path: '', message: messageOf(error) }]) add(issue.ensemble, 'issues', issue);
  }
  return { ...opened, files: joinFiles([...opened.files, ...more]) };
}

/** Opens a project to run its test files. @returns the tests, or the problems of the definitions @throws NOT_FOUND */
export function openToTest(directory: string, files: readonly TextOfFile[], app: ProjectOptions, query = '') {
  return openTests(directory, files, { app, query, create: createTestOrchestrator as CreateForTest });
}

/** Opens a project to draw a flow of it. Missing mail senders, variables and secrets are accepted. @throws NOT_FOUND */
export function openToDraw(directory: string): Promise<OpenedProject> {
  return openProject(directory, {}, { assumeVariables: true, lenient: true });
}

/** The masking of a project's secrets; without a project, nothing is masked. */
export async function maskOf(directory: string): Promise<(value: unknown) => string | undefined> {
  const opened = await openToDraw(directory).catch((error: unknown) => {
    if (!isOrchestratorError(error, 'NOT_FOUND')) throw error;
  });
  if (!opened) return (value) => JSON.stringify(value);
  // It names the secrets.
  const config = opened.files.find(({ file, issues }) => /^ensemble\.config\./.test(file) && issues.length > 0);
  if (config) throw withIssues(`${config.file} has`, config.issues);
  const { secrets, env } = opened.options;
  const orchestrator = createOrchestrator({
    ...(secrets && { secrets }),
    ...(env && { env }),
    schedules: false,
    logger: false,
  });
  return (orchestrator as unknown as { readonly [MASKING]: ServedDependencies })[MASKING].json;
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
 * Opens a project only for its store, and ignores problems of its definitions.
 *
 * @param parts - `store`: the options that a store needs; `all`: also everything that stored definitions need to run;
 *   `ensembles`: the definitions of the project, too
 * @returns `problem`: the first problem of the config file, if it has one
 * @throws NOT_FOUND
 */
export async function openAsClient(
  directory: string,
  parts: 'store' | 'all' | 'ensembles',
): Promise<{
  readonly options: ProjectOptions;
  readonly problem?: { readonly file: string; readonly message: string };
}> {
  const { options, files } = await openProject(directory, {}, { assumeVariables: true });
  const config = /^ensemble\.config\.\w+$/;
  const file = files.find((one) => config.test(one.file) && one.issues.length > 0);
  const [issue] = file?.issues ?? [];
  if (file && issue) return { options: {}, problem: { file: file.file, message: issue.message } };
  if (parts === 'ensembles') return { options };
  if (parts === 'all') return { options: { ...options, ensembles: [], agents: [] } };
  const { brand, storage, components, functions, templates, limits } = options;
  return {
    options: {
      ...(brand !== undefined && { brand }),
      ...(storage && { storage }),
      ...(components && { components }),
      ...(functions && { functions }),
      ...(templates && { templates }),
      // The plan of new tokens.
      ...(limits && { limits }),
    },
  };
}

/**
 * The repository of a folder, for its components.
 * @param isNew - whether it may have no `components.yaml` yet
 * @returns undefined if the folder is in no repository, or has no components
 */
export async function findComponents(folder: string, isNew: boolean): Promise<GitComponents | undefined> {
  const found = gitComponents({ path: folder });
  const project = await found.folder().catch(() => null);
  if (project === null) return undefined;
  const isThere = project === undefined || isNew || existsSync(join(folder, 'components.yaml'));
  return isThere ? found : undefined;
}

/** The components of a store. */
export function componentsOf(storage: Storage): NonNullable<ProjectOptions['components']> {
  return componentsIn(storage, systemClock());
}

/** A store in Postgres. Its module is loaded now, its driver at the first use. @throws TypeError when it is not the URL of a Postgres database */
export async function postgresStorage(connectionString: string): Promise<Storage> {
  const postgres = await import('../entries/postgres.ts');
  return postgres.postgresStorage({ url: connectionString });
}

/** For development: a config can set it to false. */
export const KEEPS_STACKS: Pick<ProjectOptions, 'errors'> = { errors: { stack: true } };

/**
 * An orchestrator that only runs one ensemble. Its executions are kept in memory, and it resumes no execution of the project's
 * storage. The operation `storage` uses the values and objects of the project's storage, and references its
 * components.
 *
 * @param own - keeps the executions. Default: a new storage in memory
 */
export function startAlone({ storage, ...given }: ProjectOptions, own?: Storage): Orchestrator {
  const options = { ...KEEPS_STACKS, ...given, schedules: false, ...(own && { storage: own }) };
  if (!storage) return startOrchestrator(options);
  const { kv, objects } = storage;
  const orchestrator = startOrchestrator({
    components: componentsIn(storage, systemClock()),
    ...options,
    bindings: { kv, objects, ...options.bindings },
  });
  const close: Orchestrator['close'] = async (given) => {
    await orchestrator.close(given);
    await storage.close();
  };
  return { ...orchestrator, close };
}

/** An orchestrator that reads, queues and cancels executions of a storage, and runs none. */
export function startClient(options: ProjectOptions & { readonly storage: Storage }): Orchestrator {
  return startOrchestrator({ ...options, schedules: false, engine: embeddedEngine({ concurrency: 0 }) });
}

/** What a server offers of a project, for `node:http`. */
export function nodeListener(
  orchestrator: Orchestrator,
  options: { readonly dashboard: boolean },
): ReturnType<typeof toNodeListener> {
  return toNodeListener(createHandler(orchestrator, options));
}

const DEFAULT_BRAND = 'service';

/** A value for a token and its hash. Nothing is stored. */
export function newToken(brand = DEFAULT_BRAND): { readonly token: string; readonly hash: string } {
  const token = createTokenValue(brand);
  return { token, hash: tokenDigest(token) };
}

/** The hash of a token's value. @returns undefined for a text that is not the value of a token of this brand */
export function hashOfToken(value: string, brand = DEFAULT_BRAND): string | undefined {
  return isTokenValue(value, brand) ? tokenDigest(value) : undefined;
}

/** A definition in its current form. @throws INVALID_DEFINITION */
export function readDefinition(source: NonNullable<ProjectOptions['ensembles']>[number]): EnsembleDefinition {
  if (typeof source === 'string') return parseEnsemble(source);
  const { inputSchema, outputSchema, ...definition } = source as { inputSchema?: unknown; outputSchema?: unknown };
  return parseEnsemble(definition);
}

/**
 * Problems of a definition against a project's scripts, agents and variables.
 *
 * @param listed - the variables without a value that the config lists
 */
export function checkInProject(
  text: string,
  file: string,
  options: ProjectOptions,
  listed: readonly string[] = [],
): FileIssues {
  const host = { ...compileHost(options), unknownVariable: unsetVariable(listed) };
  return { file, ...checkEnsemble(text, host, file) };
}

/** Problems of a definition that keep its flow from being drawn. @param options - see {@link openToDraw} */
export function checkToDraw(text: string, file: string, options: ProjectOptions): FileIssues {
  return { file, ...checkEnsemble(text, { ...compileHost(options), lenient: true }, file) };
}

/** Problems of a definition outside a project that is about to run with the given options. */
export function checkToRunAlone(text: string, file: string, options: ProjectOptions): FileIssues {
  const unset = (name: string) => `variable \`${name}\` is not set: set it for the process and pass \`--env ${name}\``;
  return { file, ...checkEnsemble(text, { ...compileHost(options), unknownVariable: unset }, file) };
}

/** Problems of a definition outside a project. References that only a host can check, such as scripts, are accepted. */
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

/** The options that run one definition outside a project. */
export function optionsAlone(text: string, given: ProjectOptions): ProjectOptions {
  return { http: nodeHttp(), ...given, ensembles: [text] };
}

/** @throws INVALID_DEFINITION, NOT_CONFIGURED */
export function startOrchestrator(options: ProjectOptions): Orchestrator {
  return createOrchestrator(options) as Orchestrator;
}

/** The JSON Schema of definition files, for editors. @param options - of a project, whose operations it knows */
export function editorSchema(names?: ProjectNames, options: ProjectOptions = {}): object {
  return definitionSchema(compileHost(options).operations, names);
}

/** The names that the definitions of a project can use. An ensemble whose definition has problems counts too. */
export function projectNames({ agents = [], scripts = {}, ensembles = [] }: ProjectOptions): ProjectNames {
  return {
    agents: agents.map(({ name }) => name).sort(),
    scripts: Object.keys(scripts).sort(),
    ensembles: ensembles.flatMap((ensemble) => nameIn(ensemble) ?? []).sort(),
  };
}

/**
 * What to do about the problems of a folder with definitions only: its options may be in code.
 *
 * @returns undefined if there are no problems, or the options are known
 */
export function helpForOptions(
  { project, files }: Pick<OpenedProject, 'project' | 'files'>,
  command: string,
): string | undefined {
  const hasScripts = files.some(({ file }) => file.startsWith('scripts/'));
  if (project.config || hasScripts || !files.some(({ issues }) => issues.length > 0)) return undefined;
  return `this folder has no \`ensemble.config\` and no scripts. If its scripts, senders and variables are in the code of an app, name a module that exports them: ${command} --app ./app.mjs`;
}

/** The files of a project and their issues, with paths as a user in `cwd` writes them. */
export function shownFrom(cwd: string, directory: string, files: readonly FileIssues[]): FileIssues[] {
  return files.map(({ file, issues, warnings, types }) => {
    const shown = showPath(cwd, resolve(directory, file));
    const placed = (issue: DefinitionIssue) => ({ ...issue, source: shown });
    return {
      file: shown,
      issues: issues.map(placed),
      warnings: warnings.map(placed),
      ...(types && {
        types() {
          const report = types();
          return { ...report, unknown: report.unknown.map(placed) };
        },
      }),
    };
  });
}

/** A path as a user in `cwd` writes it. */
export function showPath(cwd: string, path: string): string {
  const short = relative(cwd, path);
  return (short.startsWith('..') && short.length > path.length ? path : short || '.').replaceAll('\\', '/');
}

/** A webhook of a project. */
export interface ProjectWebhook {
  readonly webhook: Webhook;
  readonly ensemble: string;
  readonly warnings: readonly string[];
}

/**
 * The webhooks of a project, in the order of their paths.
 * @param lenient - secrets need no value; then the webhooks can only be shown
 * @throws INVALID_DEFINITION, NOT_CONFIGURED
 */
export function webhooksOf(options: ProjectOptions, lenient = false): readonly ProjectWebhook[] {
  const host = { ...compileHost(options), lenient };
  const ensembles = [...loadEnsembles(options.ensembles ?? [], host).values()];
  const shared = sharedSecrets(ensembles.flatMap(({ compiled }) => compiled.webhooks));
  const found = ensembles.flatMap(({ compiled, warnings }) => {
    const places = (compiled.definition.trigger ?? []).flatMap(({ type }, at) => (type === 'webhook' ? [at] : []));
    return compiled.webhooks.map((webhook, i) => {
      const place = `trigger[${places[i]}].`;
      const own = warnings.flatMap(({ path, message }) =>
        path.startsWith(place) ? [`${path.slice(place.length)} ${message}`] : [],
      );
      const other = shared.get(webhook);
      const more = other === undefined ? [] : [`has the secret of ${other}: each accepts the requests of the other`];
      return { webhook, ensemble: compiled.name, warnings: [...own, ...more] };
    });
  });
  return found.sort((a, b) => (a.webhook.path < b.webhook.path ? -1 : 1));
}

/** The OpenAPI document of the API, as a handler serves it. */
export async function openApiOf(basePath: string, brand = DEFAULT_BRAND): Promise<unknown> {
  const handler = createHandler(createOrchestrator({ brand, logger: false }), { basePath });
  const response = await handler.fetch(new Request(`http://localhost${basePath}/api/v1/openapi.json`));
  return response.json();
}
