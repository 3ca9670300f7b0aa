/** `ensemble graph`: the flow of an ensemble as a Mermaid flowchart, also with how one execution of it went. */

import { type AgentRun, type Execution, isFinal } from '../engine/model/execution.ts';
import { CliError, wrongUsage } from './cli-error.ts';
import { type FoundDefinition, findDefinition } from './find-definition.ts';
import { flowGraph } from './flow-graph.ts';
import { type PlaceOptions, withService } from './open-service.ts';
import type { Output } from './output.ts';
import { type Direction, MERMAID_EDGES, printMermaid, type StepMarks } from './print-mermaid.ts';
import type { Service, ServiceHost } from './service.ts';
import { type StepRun, stepMarks } from './step-marks.ts';

export interface GraphOptions extends PlaceOptions {
  readonly direction: string;
  readonly execution?: string;
}

/** @param target - an ensemble of the project, or a file; needless where an execution names its own */
export async function graph(
  target: string | undefined,
  options: GraphOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const direction = readDirection(options.direction);
  const { execution } = options;
  if (target === undefined && execution === undefined)
    throw wrongUsage('name an ensemble or a file, or an execution with --execution');
  if (execution === undefined && (options.storage ?? options.url ?? options.token) !== undefined)
    throw wrongUsage('--storage, --url and --token say where an execution is: name it with --execution');
  const capture = output.capture();
  const found = target === undefined ? undefined : await findDefinition(target, options.dir, output, host.cwd);
  if (target !== undefined && !found) return 1;
  const ran = execution === undefined ? undefined : await readRun(execution, found, options, output, host);
  capture.release();
  const { definition, agents = [] } = (ran ?? found) as Partial<RunGraph> & Pick<RunGraph, 'definition'>;
  const drawn = flowGraph(definition, new Map(agents.map((agent) => [agent.name, agent])));
  if (drawn.edges.length > MERMAID_EDGES) {
    const most = `Mermaid draws ${MERMAID_EDGES} unless its \`maxEdges\` is raised`;
    output.say(`${output.colors.yellow('warning:')} the graph has ${drawn.edges.length} edges; ${most}\n`);
  }
  output.print(printMermaid(drawn, direction, ran?.marks));
  return 0;
}

function readDirection(given: string): Direction {
  const direction = given.toUpperCase();
  if (direction === 'TD' || direction === 'LR') return direction;
  throw wrongUsage(`--direction must be TD (top down) or LR (left to right), not ${JSON.stringify(given)}`);
}

interface RunGraph extends FoundDefinition {
  readonly marks: StepMarks;
}

/** @param found - what is to be drawn in place of what the execution ran */
async function readRun(
  id: string,
  found: FoundDefinition | undefined,
  options: GraphOptions,
  output: Output,
  host: ServiceHost,
): Promise<RunGraph> {
  // The project of a definition that is named is not where its execution is, if a server or a store is.
  const { dir, ...place } = options;
  const isElsewhere = found !== undefined && (options.url ?? options.storage) !== undefined;
  return withService(isElsewhere ? place : options, host, async (service) => {
    const execution = await service.executions.get(id);
    if (found && found.definition.name !== execution.ensemble)
      throw new CliError(
        `execution ${execution.id} is of \`${execution.ensemble}\`, not of \`${found.definition.name}\``,
      );
    const drawn = found ?? (await definitionOf(service, execution, output));
    const runs = await readRuns(service, execution);
    const children = await readChildren(service, execution);
    return { ...drawn, marks: stepMarks(drawn.definition, execution, [...runs, ...children]) };
  });
}

async function definitionOf(
  { executions }: Service,
  execution: Execution<unknown>,
  { say, colors }: Output,
): Promise<FoundDefinition> {
  const { id, ensemble, version } = execution;
  if (ensemble.startsWith('agent:'))
    throw new CliError(`execution ${id} ran the agent \`${ensemble.slice('agent:'.length)}\` alone: it has no flow`);
  const stored = await executions.definition(execution);
  if (!stored)
    throw new CliError(`the definition ${version} of execution ${id} is not stored; name the ensemble or its file`);
  if (stored.version !== version) {
    const shown = `the server's \`${ensemble}\` is drawn as it is now; execution ${id} began with another version of it`;
    say(`${colors.yellow('warning:')} ${shown}\n`);
  }
  return { definition: stored.definition, agents: [] };
}

async function readRuns(
  { executions }: Service,
  { id, agents, metrics }: Execution<unknown>,
): Promise<readonly AgentRun[]> {
  if (metrics.agents <= agents.length) return agents;
  const runs: AgentRun[] = [];
  let cursor: string | undefined;
  do {
    const page = await executions.agents(id, { limit: 250, ...(cursor !== undefined && { cursor }) });
    runs.push(...page.agents);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return runs;
}

/** The children that its steps started; of one that goes on behind another execution, those too whose results it was handed. */
async function readChildren({ executions }: Service, execution: Execution<unknown>): Promise<readonly StepRun[]> {
  const children = new Map<string, StepRun>();
  for (let parent: Execution<unknown> | undefined = execution; parent; ) {
    let cursor: string | undefined;
    do {
      const page = await executions.list({ parentId: parent.id, limit: 250, ...(cursor !== undefined && { cursor }) });
      for (const { trigger, status, retryOf } of page.executions) {
        const { key } = trigger;
        // Whoever tries a child again does that for himself: its parent has been told how it came out.
        if (key === undefined || retryOf !== undefined || children.has(key)) continue;
        if (parent === execution || status === 'completed')
          children.set(key, { key, status: isFinal(status) ? status : 'running' });
      }
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    const { retryOf }: Execution<unknown> = parent;
    parent = retryOf === undefined ? undefined : await executions.get(retryOf).catch(() => undefined);
  }
  return [...children.values()];
}
