/** `ensemble graph`: the flow of an ensemble as a Mermaid flowchart, optionally with the state of one execution. */

import { readPages } from '../../engine/base/read-pages.ts';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import { executionMarks } from '../graph/execution-marks.ts';
import { flowGraph } from '../graph/flow-graph.ts';
import { type Direction, MERMAID_EDGES, printMermaid } from '../graph/print-mermaid.ts';
import { type FoundDefinition, findDefinition } from '../project/find-definition.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';

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
  const given = execution === undefined ? found : await readRun(execution, found, options, host);
  const { definition, agents = [], ran } = given as Partial<RunGraph> & Pick<RunGraph, 'definition'>;
  const drawn = flowGraph(definition, new Map(agents.map((agent) => [agent.name, agent])));
  if (drawn.edges.length > MERMAID_EDGES) {
    const limit = `Mermaid draws at most ${MERMAID_EDGES} unless you raise its \`maxEdges\``;
    output.say(`${output.colors.yellow('warning:')} the graph has ${drawn.edges.length} edges; ${limit}\n`);
  }
  output.print(printMermaid(drawn, direction, ran && executionMarks(drawn, ran.execution, ran.steps)));
  return 0;
}

function readDirection(given: string): Direction {
  const direction = given.toUpperCase();
  if (direction === 'TD' || direction === 'LR') return direction;
  throw wrongUsage(`--direction must be TD (top down) or LR (left to right), not ${JSON.stringify(given)}`);
}

interface RunGraph extends FoundDefinition {
  readonly ran: { readonly execution: Execution<unknown>; readonly steps: readonly ExecutionStep[] };
}

/** @param found - the definition to draw instead of the execution's own */
async function readRun(
  id: string,
  found: FoundDefinition | undefined,
  options: GraphOptions,
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
    const drawn = found ?? { definition: (await service.executions.definition(execution.id)).definition, agents: [] };
    const { items } = await readPages('steps', (page) => service.executions.steps(execution.id, page));
    return { ...drawn, ran: { execution, steps: items } };
  });
}
