/** A flow as a tree that is updated from an execution's events: one node for each step, however many items or rounds it has. */

import type { EnsembleDefinition, StepDefinition } from '../../engine/ensemble/ensemble.ts';
import { placedLists, placeOf, titleOf, verbOf } from '../../engine/ensemble/flow-places.ts';
import type { OrchestratorEvent } from '../../engine/events/event.ts';
import { type AgentRow, applyToRow, createAgentRow, endRow } from '../progress/agent-rows.ts';

export interface TreeNode {
  readonly place: string;
  readonly verb: string;
  readonly title: string;
  readonly depth: number;
  readonly parent: TreeNode | undefined;
  readonly children: TreeNode[];
  /** It is inside a loop: after its end in one item or round, it may begin again in the next. */
  readonly inLoop: boolean;
  /** An event of it was received. */
  reached: boolean;
  /** Its begin was received, so it runs until it is over. */
  begun: boolean;
  /** It has ended. */
  over: boolean;
  /** The runs of an agent. For a block, only its times. */
  readonly run: AgentRow;
  /** The items of a `foreach`, summed over all its runs at this place. */
  items: number | undefined;
  /** The items or rounds that have begun. */
  passes: number;
  /** The list that a choice led to. */
  chosen: string | undefined;
  /** The end of its wait, in Unix ms. */
  until: number | undefined;
}

export interface FlowTree {
  readonly roots: readonly TreeNode[];
  /** @param now - monotonic ms */
  apply(event: OrchestratorEvent, now: number): void;
  /** Called when the execution has ended. @param now - monotonic ms @param wall - Unix ms */
  end(now: number, wall: number): void;
}

/** @param definition - of the execution; a step that it does not contain is added at the step's first event */
export function createFlowTree(definition: Pick<EnsembleDefinition, 'flow' | 'agents'> | undefined): FlowTree {
  const nodes = new Map<string, TreeNode>();
  const roots: TreeNode[] = [];
  const lastPass = new Map<string, number>();
  /** The places of detached steps: they start a child execution without waiting for it. */
  const detached = new Set<string>();

  const add = (place: string, verb: string, title: string, parent: TreeNode | undefined): TreeNode => {
    const isInLoop = parent !== undefined && (parent.inLoop || isLoop(parent));
    const node: TreeNode = {
      ...{ place, verb, title, parent, children: [], inLoop: isInLoop, run: createAgentRow(title, 0) },
      ...{ depth: parent ? parent.depth + 1 : 0, reached: false, begun: false, over: false, passes: 0 },
      ...{ items: undefined, chosen: undefined, until: undefined },
    };
    nodes.set(place, node);
    (parent?.children ?? roots).push(node);
    return node;
  };
  const grow = (steps: readonly StepDefinition[], place: string, parent: TreeNode | undefined) => {
    for (const [i, step] of steps.entries()) {
      const at = `${place}[${i}]`;
      const node = add(at, verbOf(step), titleOf(step), parent);
      if ('ensemble' in step && step.detached) detached.add(at);
      for (const member of membersOf(step, definition?.agents)) add(`${at}.${member}`, 'agent', member, node);
      for (const list of placedLists(step, at)) {
        // The steps of `try` are direct children of their node. `catch` and `finally` have nodes of their own.
        const isOwn = list.part === 'catch' || list.part === 'finally';
        grow(list.steps, list.place, isOwn ? add(list.place, 'list', list.label, node) : node);
      }
    }
  };
  grow(definition?.flow ?? [], 'flow', undefined);

  /** The node of a place. A place that the definition does not contain gets a node under its step. */
  const nodeAt = (place: string, name: string): TreeNode => {
    const router = place.slice(0, Math.max(0, place.lastIndexOf('.')));
    const parent = place.endsWith(']') ? undefined : nodes.get(router);
    return nodes.get(place) ?? add(place, 'agent', name, parent);
  };
  const reach = (node: TreeNode, key: string, now: number, begins = true) => {
    countPasses(key);
    for (let at: TreeNode | undefined = node; at; at = at.parent) {
      if (!at.reached) at.run.startedAt = now;
      at.reached = true;
      at.begun ||= begins;
      if (!at.parent?.inLoop && !at.inLoop && at.parent?.verb !== 'parallel') closeBefore(at, now);
      chooseList(at);
    }
  };
  /** The steps before a step have ended when it begins. */
  const closeBefore = (node: TreeNode, now: number) => {
    for (const before of node.parent?.children ?? roots) {
      if (before === node) return;
      if (before.reached) close(before, now);
    }
  };
  const close = (node: TreeNode, now: number) => {
    if (node.over) return;
    node.over = true;
    if (!isLeafAgent(node)) node.run.duration = now - node.run.startedAt;
    for (const child of node.children) close(child, now);
  };
  const countPasses = (key: string) => {
    for (const { 0: pass, 1: number, index } of key.matchAll(/\.(?:foreach|while)\[(\d+)\](?=\.)/g)) {
      const loop = nodes.get(placeOf(key.slice(0, index)));
      if (!loop) continue;
      // The items of one loop begin in order. Items of the same loop inside another item are added.
      const own = key.slice(0, index + pass.length - `${number}]`.length);
      const begun = Number(number) + 1;
      const counted = lastPass.get(own) ?? 0;
      if (begun <= counted) continue;
      loop.passes += begun - counted;
      lastPass.set(own, begun);
    }
  };

  const applyToAgents = (event: OrchestratorEvent, now: number) => {
    switch (event.event) {
      case 'agent.started':
      case 'agent.skipped': {
        const { agent, key } = event.data;
        const node = nodeAt(placeOf(key), agent);
        reach(node, key, now);
        applyToRow(node.run, event, now);
        break;
      }
      case 'agent.retrying': {
        const { agent, key } = event.data;
        const node = nodeAt(placeOf(key), agent);
        // A watched execution of another process has no event of the start.
        if (node.run.active === 0) {
          reach(node, key, now);
          node.run.active += 1;
        }
        applyToRow(node.run, event, now);
        break;
      }
      case 'agent.completed':
      case 'agent.failed': {
        const { agent, key, duration } = event.data;
        const node = nodeAt(placeOf(key), agent);
        // A watched execution of another process has only events of results.
        if (node.reached) countPasses(key);
        else reach(node, key, now - duration, false);
        applyToRow(node.run, event, now);
        break;
      }
    }
  };
  const applyToSteps = (event: OrchestratorEvent, now: number) => {
    const node = 'key' in event.data ? nodes.get(placeOf(event.data.key)) : undefined;
    if (!node) return;
    switch (event.event) {
      case 'foreach.started':
        reach(node, event.data.key, now);
        node.items = (node.items ?? 0) + event.data.items;
        break;
      case 'child.started':
        reach(node, event.data.key, now);
        if (!detached.has(node.place)) node.run.active += 1;
        else if (!node.inLoop) close(node, now);
        break;
      case 'child.ended':
        node.run.active -= 1;
        if (event.data.status === 'completed') node.run.completed += 1;
        else node.run.failed += 1;
        if (!node.inLoop) close(node, now);
        break;
      case 'step.waiting':
        reach(node, event.data.key, now);
        node.until = Math.max(node.until ?? 0, event.data.until ?? Number.POSITIVE_INFINITY);
        node.run.active += 1;
        break;
      case 'step.continued':
      case 'signal.taken':
        if (!node.reached) reach(node, event.data.key, now);
        node.run.active = Math.max(0, node.run.active - 1);
        if (event.event === 'step.continued' && event.data.failed) node.run.failed += 1;
        if (node.run.active === 0) node.until = undefined;
        if (!node.inLoop) close(node, now);
        break;
    }
  };

  return {
    roots,
    apply(event, now) {
      applyToAgents(event, now);
      applyToSteps(event, now);
    },
    end(now, wall) {
      for (const node of nodes.values()) {
        if (!node.reached) continue;
        if (['agent', 'ensemble'].includes(node.verb) || (node.until !== undefined && node.until > wall && !node.over))
          endRow(node.run, now);
        close(node, now);
      }
    },
  };
}

/** Whether the node is an agent that runs: an agent with routes only leads to other agents. */
export function isLeafAgent({ verb, children }: TreeNode): boolean {
  return verb === 'agent' && children.length === 0;
}

export function isLoop({ verb }: TreeNode): boolean {
  return verb === 'foreach' || verb === 'while';
}

/** The agents that a step may lead to. */
function membersOf(step: StepDefinition, agents: EnsembleDefinition['agents']): string[] {
  if (!('agent' in step)) return [];
  const { routes } = step.routes ? step : (agents?.find(({ name }) => name === step.agent) ?? {});
  return [...new Set(routes?.flatMap(({ member }) => member ?? []))];
}

/** Sets `chosen` of an `if` or `switch` that is not in a loop. */
function chooseList({ parent, place, inLoop }: TreeNode): void {
  if (!parent || inLoop || (parent.verb !== 'if' && parent.verb !== 'switch')) return;
  const list = place.slice(parent.place.length + 1, place.lastIndexOf('['));
  parent.chosen = list.startsWith('cases.') ? list.slice('cases.'.length) : list;
}
