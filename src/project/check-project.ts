/** Checks the files of a project, and returns all problems by file. */

import type { DefinitionIssue } from '../engine/base/errors.ts';
import { compileSingleAgent } from '../engine/definition/compile/compile-ensemble.ts';
import type { CompileHost } from '../engine/definition/compile/triggers/compile-host.ts';
import { createDroppedParts } from '../engine/definition/forms/dropped-parts.ts';
import { parseDefinition, readAgent } from '../engine/definition/read/parse-ensemble.ts';
import { type Spellings, sourceOf } from '../engine/definition/read/read-older-form.ts';
import { type Path, type Problem, toIssues } from '../engine/definition/source/problem.ts';
import { readSource } from '../engine/definition/source/read-source.ts';
import type { AgentDefinition } from '../engine/ensemble/ensemble.ts';
import { compileHost } from '../orchestrator/create-orchestrator.ts';
import { type CheckedDefinition, checkDefinitions } from '../orchestrator/definitions/load-definitions.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';
import type { Project } from './read-project.ts';

export interface FileIssues extends CheckedDefinition {
  /** The name of the file's ensemble, if the ensemble has no problem. */
  readonly ensemble?: string;
  /** Relative to the project folder, with `/`. */
  readonly file: string;
}

export interface CheckedProject {
  /** The shared agents of the `agents` folder whose form is valid. */
  readonly agents: readonly AgentDefinition[];
  readonly files: readonly FileIssues[];
}

type Report = (
  file: string,
  issues: readonly DefinitionIssue[],
  warnings?: readonly DefinitionIssue[],
  types?: CheckedDefinition['types'],
) => void;

/**
 * @param project - the project as it was read
 * @param options - the scripts, operations, agents and variables that the definitions can use
 * @param lenient - accepts references to what the host has not configured
 */
export function checkProject(project: Project, options: OrchestratorOptions, lenient: boolean): CheckedProject {
  const files = new Map<
    string,
    { issues: DefinitionIssue[]; warnings: DefinitionIssue[]; types?: FileIssues['types'] }
  >();
  const report: Report = (file, issues, warnings = [], types = undefined) => {
    const found = files.get(file) ?? { issues: [], warnings: [], ...(types && { types }) };
    found.issues.push(...issues);
    found.warnings.push(...warnings);
    files.set(file, found);
  };
  const configFile = project.config?.file;
  for (const file of configFile ? [configFile, ...project.scriptFiles] : project.scriptFiles) report(file, []);
  for (const { file, message } of project.problems) report(file, [{ path: '', message, source: file }]);

  const host = projectHost(project, options, lenient);
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
  const broken = new Map(read.flatMap(({ brokenName }) => (brokenName === undefined ? [] : [placeholder(brokenName)])));
  for (const { file, agent, compile } of read) {
    const issues = compile?.(withAgents(broken)) ?? [];
    report(file, issues);
    if (agent && issues.length > 0) broken.set(...placeholder(agent.name));
  }
  const ensembles = checkEnsembles(project, withAgents(broken), report);
  const named = new Map([...ensembles].map(([ensemble, file]) => [file, { ensemble }]));
  return {
    agents: [...agents.values()],
    files: [...files].map(([file, found]) => ({ file, ...named.get(file), ...found })),
  };
}

// A script that can't be imported is reported once, for its file: a definition that uses it has no problem of its own. The same is
// true for variables if the config can't be read.
function projectHost(project: Project, options: OrchestratorOptions, lenient: boolean): CompileHost {
  const broken = project.problems.map(({ file }) => file).filter((file) => file.startsWith('scripts/'));
  const names = broken.map((file) => file.slice('scripts/'.length).replace(/\.\w+$/, ''));
  const scripts = { ...Object.fromEntries(names.map((name) => [name, () => null])), ...options.scripts };
  const configBroken = project.problems.some(({ file }) => file.startsWith('ensemble.config.'));
  return {
    ...compileHost({ ...options, scripts }),
    lenient: lenient || configBroken,
    unknownVariable: unsetVariable(project.absent),
  };
}

/**
 * The problem of a variable that a project does not have.
 *
 * @param listed - the variables without a value that the config lists
 */
export function unsetVariable(listed: readonly string[]): (name: string) => string {
  return (name) => {
    const problem = `variable \`${name}\` is not set: write it in \`.env\`, or set it for the process`;
    if (listed.includes(name)) return problem;
    return `${problem} and name it with \`env: ['${name}']\` in \`ensemble.config.*\` or \`--env ${name}\``;
  };
}

interface AgentFile {
  readonly file: string;
  readonly issues: readonly DefinitionIssue[];
  readonly agent?: AgentDefinition;
  /** The name of the agent in a file with problems. */
  readonly brokenName?: string;
  readonly compile?: (host: CompileHost) => readonly DefinitionIssue[];
}

function readAgentFile(file: string, text: string): AgentFile {
  const source = readSource(text);
  if (!source.ok) return { file, issues: source.issues.map((issue) => ({ ...issue, source: file })) };
  const problems: Problem[] = [];
  const place = { path: [], source: [] };
  const located = { ...source.map, text: text.replace(/^\ufeff/, ''), value: source.value };
  const spellings: Spellings = new Map();
  const dropped = createDroppedParts();
  const agent = readAgent(source.value, place, { spellings, dropped, report: (problem) => problems.push(problem) });
  const name = (source.value as { readonly name?: unknown } | null)?.name;
  const broken = typeof name === 'string' && problems.length > 0 ? { brokenName: name } : {};
  // A router has no operation: it is checked where an ensemble uses it.
  if (!agent || agent.routes) {
    return {
      file,
      issues: toIssues(problems, located, file),
      ...(agent && problems.length === 0 && { agent }),
      ...broken,
    };
  }
  const read = { problems, dropped, sourceOf: (path: Path) => sourceOf(path, spellings) };
  const compile = (host: CompileHost) => toIssues(compileSingleAgent(agent, host, read).problems, located, file);
  return { file, issues: [], ...(problems.length === 0 && { agent }), ...broken, compile };
}

// Replaces an agent whose file has problems, so that ensembles that use the agent have no further problem.
function placeholder(name: string): [string, AgentDefinition] {
  return [name, { name, operation: 'api', config: { url: 'https://example.com' }, output: {} }];
}

function sharedTwice(name: string, file: string, other: string): DefinitionIssue {
  return { path: 'name', message: `agent \`${name}\` is defined in ${other} too; rename one of them`, source: file };
}

/** @returns the file of each valid ensemble, by the ensemble's name */
function checkEnsembles(project: Project, host: CompileHost, report: Report): ReadonlyMap<string, string> {
  const fileOf = new Map<string, string>();
  const nameOf = new Map(project.ensembles.map(({ file, text }) => [file, nameIn(text)]));
  const names = new Set([...nameOf.values()].filter((name) => name !== undefined));
  const sources = project.ensembles.map(({ file, text }) => ({ file, source: text }));
  const checked = checkDefinitions(sources, host, names);
  for (const [i, { file, text }] of project.ensembles.entries()) {
    const { issues, warnings, types } = checked[i] as CheckedDefinition;
    report(file, issues, warnings, types);
    const name = nameOf.get(file);
    if (issues.length > 0 || name === undefined) continue;
    const other = fileOf.get(name);
    if (other === undefined) {
      fileOf.set(name, file);
      continue;
    }
    const message = `ensemble \`${name}\` is defined in ${other} too; rename one of them`;
    report(file, toIssues([{ path: ['name'], message }], parseDefinition(text).map, file));
  }
  return fileOf;
}

/** The name in a definition, even if the definition has problems. */
export function nameIn(source: NonNullable<OrchestratorOptions['ensembles']>[number]): string | undefined {
  const read = typeof source === 'string' ? readSource(source) : { ok: true, value: source };
  const name = read.ok ? (read.value as { readonly name?: unknown } | null)?.name : undefined;
  return typeof name === 'string' ? name : undefined;
}
