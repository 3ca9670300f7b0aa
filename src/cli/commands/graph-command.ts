/** `ensemble graph`: the flow of an ensemble as a Mermaid flowchart, optionally with the state of one execution. */

import { type AgentRun, type Execution, isFinal } from '../../engine/model/execution.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import { type FoundDefinition, findDefinition } from '../project/find-definition.ts';
import { flowGraph } from '../graph/flow-graph.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { Output } from '../terminal/output.ts';
import { type Direction, MERMAID_EDGES, printMermaid, type StepMarks } from '../graph/print-mermaid.ts';
import { readPages } from '../service/read-pages.ts';
import type { Service, ServiceHost } from '../service/service.ts';
import { type StepRun, stepMarks } from '../graph/step-marks.ts';

export interface GraphOptions extends PlaceOptions {
  readonly direction: string;
  readonly execution?: string;
}

/** @param target - an ensemble of the project, or a file; optional with `--execution` */
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
  const found = target === undefined ? undefined : await findDefinition(target, options.dir, output, host.cwd);
  if (target !== undefined && !found) return 1;
  const ran = execution === undefined ? undefined : await readRun(execution, found, options, output, host);
  const { definition, agents = [] } = (ran ?? found) as Partial<RunGraph> & Pick<RunGraph, 'definition'>;
  const drawn = flowGraph(definition, new Map(agents.map((agent) => [agent.name, agent])));
  if (drawn.edges.length > MERMAID_EDGES) {
    const limit = `Mermaid draws at most ${MERMAID_EDGES} unless you raise its \`maxEdges\``;
    output.say(`${output.colors.yellow('warning:')} the graph has ${drawn.edges.length} edges; ${limit}\n`);
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

/** @param found - the definition to draw instead of the execution's own */
async function readRun(
  id: string,
  found: FoundDefinition | undefined,
  options: GraphOptions,
  output: Output,
  host: ServiceHost,
): Promise<RunGraph> {
  // With --url or --storage, --dir names only the project of the definition, not the place of the execution.
  const { dir, ...place } = options;
  const isElsewhere = found !== undefined && (options.url ?? options.storage) !== undefined;
  return withService(isElsewhere ? place : options, host, async (service) => {
    const execution = await service.executions.get(id);
    if (found && found.definition.name !== execution.ensemble)
      throw new CliError(
        `execution ${execution.id} belongs to \`${execution.ensemble}\`, not to \`${found.definition.name}\``,
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
    const shown = `the graph shows the server's current \`${ensemble}\`; execution ${id} began with another version`;
    say(`${colors.yellow('warning:')} ${shown}\n`);
  }
  return { definition: stored.definition, agents: [] };
}

async function readRuns(
  { executions }: Service,
  { id, agents, metrics }: Execution<unknown>,
): Promise<readonly AgentRun[]> {
  if (metrics.agents <= agents.length) return agents;
  return (await readPages('agents', (page) => executions.agents(id, page))).items;
}

/** The child executions of an execution. For a retry, also the completed children of the retried execution, whose results it received. */
async function readChildren({ executions }: Service, execution: Execution<unknown>): Promise<readonly StepRun[]> {
  const children = new Map<string, StepRun>();
  for (let parent: Execution<unknown> | undefined = execution; parent; ) {
    let cursor: string | undefined;
    do {
      const page = await executions.list({ parentId: parent.id, limit: 250, ...(cursor !== undefined && { cursor }) });
      for (const { trigger, status, retryOf } of page.executions) {
        const { key } = trigger;
        // A retry of a child does not count: its parent has the child's first result.
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
