/** Checks the files of a project against each other, and gives every problem with the name of its file. */

import type { Project } from './adapters/node/read-project.ts';
import { compileSingleAgent } from './engine/definition/compile-ensemble.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import type { DefinitionIssue } from './engine/definition/definition-issue.ts';
import { parseDefinition, readAgent } from './engine/definition/parse-ensemble.ts';
import { type Problem, toIssues } from './engine/definition/problem.ts';
import { readSource } from './engine/definition/read-source.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import { checkEnsemble } from './load-definitions.ts';
import type { OrchestratorOptions } from './options.ts';
import { compileHost } from './orchestrator.ts';

export interface FileIssues {
  /** The name of the ensemble that the file holds, where nothing is wrong with it. */
  readonly ensemble?: string;
  /** Relative to the project folder, with `/`. */
  readonly file: string;
  readonly issues: readonly DefinitionIssue[];
  /** What is right, and hardly meant or not yet served. */
  readonly warnings: readonly DefinitionIssue[];
}

export interface CheckedProject {
  /** The shared agents of the `agents` folder, those whose form is right. */
  readonly agents: readonly AgentDefinition[];
  readonly files: readonly FileIssues[];
}

type Told = (file: string, issues: readonly DefinitionIssue[], warnings?: readonly DefinitionIssue[]) => void;

/**
 * @param project - a project as it was read
 * @param options - what the project's files are checked against: scripts, operations, agents and variables
 */
export function checkProject(project: Project, options: OrchestratorOptions): CheckedProject {
  const files = new Map<string, { readonly issues: DefinitionIssue[]; readonly warnings: DefinitionIssue[] }>();
  const report: Told = (file, issues, warnings = []) => {
    const found = files.get(file) ?? { issues: [], warnings: [] };
    found.issues.push(...issues);
    found.warnings.push(...warnings);
    files.set(file, found);
  };
  const configFile = project.config?.file;
  for (const file of configFile ? [configFile, ...project.scriptFiles] : project.scriptFiles) report(file, []);
  for (const { file, message } of project.problems) report(file, [{ path: '', message, source: file }]);

  const host = projectHost(project, options);
  const read = project.agents.map(({ file, text }) => readAgentFile(file, text));
  const agents = new Map<string, AgentDefinition>();
  const fileOf = new Map<string, string>();
  for (const { file, agent, issues } of read) {
    report(file, issues);
    if (!agent) continue;
    const other = fileOf.get(agent.name) ?? (host.sharedAgents.has(agent.name) ? configFile : undefined);
    if (other !== undefined) report(file, [sharedTwice(agent.name, file, other)]);
    else fileOf.set(agent.name, file);
    agents.set(agent.name, agent);
  }
  const withAgents = (more: ReadonlyMap<string, AgentDefinition>): CompileHost => ({
    ...host,
    sharedAgents: new Map([...host.sharedAgents, ...agents, ...more]),
  });
  const broken = new Map(read.flatMap(({ brokenName }) => (brokenName === undefined ? [] : [standIn(brokenName)])));
  for (const { file, agent, compile } of read) {
    const issues = compile?.(withAgents(broken)) ?? [];
    report(file, issues);
    if (agent && issues.length > 0) broken.set(...standIn(agent.name));
  }
  const ensembles = checkEnsembles(project, withAgents(broken), report);
  const named = new Map([...ensembles].map(([ensemble, file]) => [file, { ensemble }]));
  return {
    agents: [...agents.values()],
    files: [...files].map(([file, found]) => ({ file, ...named.get(file), ...found })),
  };
}

// A script that can't be imported is reported once, at its file: definitions that name it are not at fault. The same holds for
// variables when the config can't be read.
function projectHost(project: Project, options: OrchestratorOptions): CompileHost {
  const broken = project.problems.map(({ file }) => file).filter((file) => file.startsWith('scripts/'));
  const names = broken.map((file) => file.slice('scripts/'.length).replace(/\.\w+$/, ''));
  const scripts = { ...Object.fromEntries(names.map((name) => [name, () => null])), ...options.scripts };
  const configBroken = project.problems.some(({ file }) => file.startsWith('ensemble.config.'));
  return { ...compileHost({ ...options, scripts }), lenient: configBroken };
}

interface AgentFile {
  readonly file: string;
  readonly issues: readonly DefinitionIssue[];
  readonly agent?: AgentDefinition;
  /** The name that a file with problems was meant to define. */
  readonly brokenName?: string;
  readonly compile?: (host: CompileHost) => readonly DefinitionIssue[];
}

function readAgentFile(file: string, text: string): AgentFile {
  const source = readSource(text);
  if (!source.ok) return { file, issues: source.issues.map((issue) => ({ ...issue, source: file })) };
  const problems: Problem[] = [];
  const place = { path: [], source: [] };
  const located = { ...source.map, text: text.replace(/^\ufeff/, ''), value: source.value };
  const agent = readAgent(source.value, place, { spellings: new Map(), report: (problem) => problems.push(problem) });
  const issues = toIssues(problems, located, file);
  const name = (source.value as { readonly name?: unknown } | null)?.name;
  if (!agent || issues.length > 0) return { file, issues, ...(typeof name === 'string' && { brokenName: name }) };
  // A router has no operation of its own: it is checked where it is used.
  if (agent.routes) return { file, issues, agent };
  return {
    file,
    issues,
    agent,
    compile: (host) => toIssues(compileSingleAgent(agent, host).problems, located, file),
  };
}

// In the place of an agent whose file is wrong, so that ensembles which name it are not blamed.
function standIn(name: string): [string, AgentDefinition] {
  return [name, { name, operation: 'api', config: { url: 'https://example.com' } }];
}

function sharedTwice(name: string, file: string, other: string): DefinitionIssue {
  return { path: 'name', message: `agent \`${name}\` is defined in ${other} too; rename one of them`, source: file };
}

/** @returns the file of each ensemble that is right in itself, by its name */
function checkEnsembles(project: Project, host: CompileHost, report: Told): ReadonlyMap<string, string> {
  const fileOf = new Map<string, string>();
  const names = new Set(project.ensembles.flatMap(({ text }) => nameIn(text) ?? []));
  for (const { file, text } of project.ensembles) {
    const { issues, warnings } = checkEnsemble(text, host, file, names);
    report(file, issues, warnings);
    if (issues.length > 0) continue;
    const { definition, map } = parseDefinition(text);
    const other = fileOf.get(definition.name);
    if (other === undefined) {
      fileOf.set(definition.name, file);
      continue;
    }
    const message = `ensemble \`${definition.name}\` is defined in ${other} too; rename one of them`;
    report(file, toIssues([{ path: ['name'], message }], map, file));
  }
  return fileOf;
}

/** The name that a definition gives itself, right or wrong in all else. */
function nameIn(text: string): string | undefined {
  const source = readSource(text);
  const name = source.ok ? (source.value as { readonly name?: unknown } | null)?.name : undefined;
  return typeof name === 'string' ? name : undefined;
}
