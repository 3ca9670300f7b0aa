/** A flow as a graph: the order of steps, and the conditions between them. Pure, and independent of how the graph is printed. */

import type { AgentBehaviour, AgentStep, EnsembleDefinition, StepDefinition } from '../../engine/ensemble/ensemble.ts';
import { expressionText, type PlacedList, placedLists, titleOf } from '../../engine/ensemble/flow-places.ts';
import { type StepOf, type StepVerb, verbOf } from '../../engine/ensemble/step-verb.ts';

export interface GraphNode {
  readonly kind: 'node';
  readonly id: string;
  /** The place of its step; empty for a node that only connects others. */
  readonly place: string;
  readonly shape: 'agent' | 'router' | 'decision' | 'loop' | 'wait' | 'point';
  readonly lines: readonly string[];
}

/** A frame with a title around other parts. */
export interface GraphBlock {
  readonly kind: 'block';
  readonly id: string;
  readonly place: string;
  readonly title: string;
  readonly parts: readonly GraphPart[];
}

export type GraphPart = GraphNode | GraphBlock;

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly label?: string;
  /** The edge leads to the steps after a failure. */
  readonly dashed?: true;
}

export interface FlowGraph {
  readonly parts: readonly GraphPart[];
  readonly edges: readonly GraphEdge[];
}

/** The places of the start and the end. */
export const START = 'start';
export const END = 'end';

/** Agents by name, for steps that name an agent instead of defining it. */
export type Agents = ReadonlyMap<string, AgentBehaviour>;

/** An edge without its end. */
interface Exit extends Omit<GraphEdge, 'to'> {}

/** The graph under construction. New nodes go into `parts`, the parts of the current frame. */
interface Drawing {
  readonly agents: Agents;
  readonly edges: GraphEdge[];
  parts: GraphPart[];
  nodes: number;
}

type Draw<S> = (step: S, place: string, before: readonly Exit[], drawing: Drawing) => readonly Exit[];

/** @param shared - agents that the definition names but does not contain */
export function flowGraph(definition: EnsembleDefinition, shared: Agents = new Map()): FlowGraph {
  const agents = new Map(shared);
  for (const agent of definition.agents ?? []) agents.set(agent.name, agent);
  const drawing: Drawing = { agents, edges: [], parts: [], nodes: 0 };
  const begin = node({ place: START, shape: 'point', lines: ['start'] }, [], drawing);
  const last = drawList({ place: 'flow', steps: definition.flow }, begin, drawing);
  node({ place: END, shape: 'point', lines: ['end'] }, last, drawing);
  return { parts: drawing.parts, edges: drawing.edges };
}

function drawList(list: Pick<PlacedList, 'place' | 'steps'>, before: readonly Exit[], drawing: Drawing) {
  return list.steps.reduce((exits, step, i) => drawStep(step, `${list.place}[${i}]`, exits, drawing), before);
}

function drawStep(step: StepDefinition, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const verb = verbOf(step);
  const draw = verb === undefined ? drawWait : (DRAWINGS[verb] as Draw<StepDefinition>);
  return draw(step, place, before, drawing);
}

/** How each form is drawn. A step without inner steps is one node. */
const DRAWINGS: { readonly [V in StepVerb]: Draw<StepOf<V>> } = {
  agent: drawAgent,
  ...{ if: drawChoice, switch: drawChoice, foreach: drawLoop, while: drawLoop },
  ...{ parallel: drawParallel, try: drawTry },
  ...{ sleep: drawWait, wait: drawWait, ensemble: drawWait },
};

function node(
  given: Omit<GraphNode, 'kind' | 'id'>,
  before: readonly Exit[],
  drawing: Drawing,
): readonly [{ readonly from: string }] {
  drawing.nodes += 1;
  const id = `n${drawing.nodes}`;
  drawing.parts.push({ kind: 'node', id, ...given });
  connect(before, id, drawing);
  return [{ from: id }];
}

function connect(exits: readonly Exit[], to: string, { edges }: Drawing): void {
  for (const exit of exits) edges.push({ ...exit, to });
}

/** Draws a frame around what `inside` draws. @returns the frame's id, and the result of `inside` */
function block<T>(place: string, title: string, drawing: Drawing, inside: () => T): { id: string; result: T } {
  drawing.nodes += 1;
  const id = `b${drawing.nodes}`;
  const around = drawing.parts;
  const parts: GraphPart[] = [];
  drawing.parts = parts;
  const result = inside();
  drawing.parts = around;
  // Mermaid can't draw an empty frame.
  if (parts.length > 0) around.push({ kind: 'block', id, place, title, parts });
  return { id, result };
}

/** The condition of a step, as a line of its node. */
function conditionOf({ condition }: { readonly condition?: string | boolean }): string[] {
  return condition === undefined ? [] : [`only if ${expressionText(condition)}`];
}

function drawAgent(step: AgentStep, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const behaviour = behaviourOf(step, drawing);
  const { routes } = behaviour;
  const own = step.name !== undefined && step.name !== step.agent ? [`agent ${step.agent}`] : [];
  const operation = behaviour.operation === undefined ? [] : [behaviour.operation];
  const lines = [titleOf(step), ...own, ...(routes ? ['route'] : operation), ...conditionOf(behaviour)];
  const from = node({ place, shape: routes ? 'router' : 'agent', lines }, before, drawing);
  if (!routes) return from;
  const [{ from: router }] = from;
  const exits: Exit[] = [];
  for (const { condition, member, prompt } of routes) {
    const label = condition === undefined ? 'default' : expressionText(condition);
    if (member !== undefined)
      exits.push(...drawAgent({ agent: member }, `${place}.${member}`, [{ from: router, label }], drawing));
    else exits.push({ from: router, label: `${label}, prompt ${expressionText(prompt)}` });
  }
  if (routes.every(({ default: isDefault }) => isDefault !== true)) exits.push({ from: router, label: 'otherwise' });
  return exits;
}

function behaviourOf(step: AgentStep, { agents }: Drawing): AgentBehaviour {
  if (step.operation !== undefined || step.routes !== undefined) return step;
  const { condition } = step;
  return { ...agents.get(step.agent), ...(condition !== undefined && { condition }) };
}

function drawChoice(step: StepDefinition, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const [{ from }] = node({ place, shape: 'decision', lines: [titleOf(step)] }, before, drawing);
  const lists = placedLists(step, place);
  const last = 'if' in step ? 'else' : 'default';
  const exits = lists.flatMap((list) => drawList(list, [{ from, label: wordOf(list) }], drawing));
  return lists.some(({ part }) => part === last)
    ? exits
    : [...exits, { from, label: wordOf({ part: last, label: '' }) }];
}

function wordOf({ part, label }: Pick<PlacedList, 'part' | 'label'>): string {
  if (part === 'then') return 'yes';
  if (part === 'else') return 'no';
  // A case may be empty, or begin or end with a space.
  if (part === 'cases') return /^\S(?:.*\S)?$/.test(label) ? label : JSON.stringify(label);
  return 'otherwise';
}

function drawLoop(step: StepDefinition, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const isWhile = verbOf(step) === 'while';
  const { result } = block(place, titleOf(step), drawing, () => {
    const given = { place: '', shape: isWhile ? 'decision' : 'loop', lines: loopLines(step) } as const;
    const [{ from }] = node(given, before, drawing);
    const [body] = placedLists(step, place);
    const exits = body ? drawList(body, [{ from, label: isWhile ? 'yes' : 'each item' }], drawing) : [];
    connect(
      exits.map((exit) => ({ ...exit, label: exit.label ?? (isWhile ? 'again' : 'next item') })),
      from,
      drawing,
    );
    return [{ from, label: isWhile ? 'no' : 'done' }];
  });
  return result;
}

function loopLines(step: StepDefinition): string[] {
  if ('while' in step) {
    const limit = step.maxIterations === undefined ? [] : [`at most ${step.maxIterations} rounds`];
    return [expressionText(step.while), ...limit];
  }
  const { breakWhen } = step as { readonly breakWhen?: string | boolean };
  const until = breakWhen === undefined ? [] : [`until ${expressionText(breakWhen)}`];
  return ['items', ...until, ...conditionOf(step as object)];
}

function drawParallel(step: StepDefinition, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const { waitFor = 'all' } = step as { readonly waitFor?: string };
  const { result } = block(place, titleOf(step), drawing, () => {
    const lines = ['branches', ...conditionOf(step as object)];
    const fork = node({ place: '', shape: 'loop', lines }, before, drawing);
    const branches = placedLists(step, place).flatMap((list) =>
      list.steps.flatMap((branch, i) => drawStep(branch, `${list.place}[${i}]`, fork, drawing)),
    );
    return node({ place: '', shape: 'point', lines: [waitFor] }, branches, drawing);
  });
  return result;
}

function drawTry(step: StepDefinition, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const { result } = block(place, titleOf(step), drawing, () => {
    let exits = before;
    // The block whose failure leads to the next part.
    let failing: Exit[] = [];
    for (const list of placedLists(step, place)) {
      const fails = { label: list.part === 'catch' ? 'fails' : 'in any case', dashed: true } as const;
      const entry = failing.map(({ from }) => ({ from, ...fails }));
      const isCatch = list.part === 'catch';
      const drawn = block(list.place, list.label, drawing, () =>
        drawList(list, isCatch ? entry : [...exits, ...entry], drawing),
      );
      if (list.steps.length === 0) continue;
      exits = isCatch ? [...exits, ...drawn.result] : drawn.result;
      failing = [{ from: drawn.id }];
    }
    return exits;
  });
  return result;
}

function drawWait(step: StepDefinition, place: string, before: readonly Exit[], drawing: Drawing): readonly Exit[] {
  const { name } = step as { readonly name?: string };
  const lines = [titleOf(step), ...(name === undefined ? [] : [name]), ...conditionOf(step as object)];
  return node({ place, shape: 'wait', lines }, before, drawing);
}
