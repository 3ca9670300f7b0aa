/** A flow as a tree that fills with what a run's events say: a node a step, however many items or rounds run through it. */

import type { EnsembleDefinition, StepDefinition } from '../engine/model/ensemble.ts';
import type { OrchestratorEvent } from '../engine/model/event.ts';
import { type AgentRow, applyToRow, createAgentRow, endRow } from './agent-rows.ts';
import { placedLists, placeOf, titleOf, verbOf } from './flow-places.ts';

export interface TreeNode {
  readonly place: string;
  readonly verb: string;
  readonly title: string;
  readonly depth: number;
  readonly parent: TreeNode | undefined;
  readonly children: TreeNode[];
  /** Inside of a loop: what is over in one item or round may begin again in the next. */
  readonly inLoop: boolean;
  /** Something of it has happened. */
  reached: boolean;
  /** Its begin was told, so that it is known to be at work until it is over. */
  begun: boolean;
  /** Nothing more of it is to come. */
  over: boolean;
  /** What ran: an agent's runs. Of a block, times alone. */
  readonly run: AgentRow;
  /** Items of a `foreach`, of all that ran at this place. */
  items: number | undefined;
  /** Items or rounds that have begun. */
  passes: number;
  /** The list that a choice led to. */
  chosen: string | undefined;
  /** The instant (Unix ms) until which it waits. */
  until: number | undefined;
}

export interface FlowTree {
  readonly roots: readonly TreeNode[];
  /** @param now - monotonic ms */
  apply(event: OrchestratorEvent, now: number): void;
  /** The run has ended. @param now - monotonic ms @param wall - Unix ms */
  end(now: number, wall: number): void;
}

/** @param definition - what runs; steps that it doesn't hold are added as they are met */
export function createFlowTree(definition: Pick<EnsembleDefinition, 'flow' | 'agents'> | undefined): FlowTree {
  const nodes = new Map<string, TreeNode>();
  const roots: TreeNode[] = [];
  const lastPass = new Map<string, number>();
  /** What was told already: a run that was given up for a wait is walked again when it goes on. */
  const told = new Set<string>();
  const isNew = (event: string, key: string) => told.size < told.add(`${event} ${key}`).size;

  /** Places of steps that start an execution and go on. */
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
        // What was tried stands right under its `try`; what follows it has a line of its own.
        const isOwn = list.part === 'catch' || list.part === 'finally';
        grow(list.steps, list.place, isOwn ? add(list.place, 'list', list.label, node) : node);
      }
    }
  };
  grow(definition?.flow ?? [], 'flow', undefined);

  /** The node of a place; one that the definition doesn't tell of stands under the step it belongs to. */
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
      choose(at);
    }
  };
  /** What stands before a step has ended when it begins. */
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
      // Items of one loop begin in order; those of the same loop inside of another item count on.
      const own = key.slice(0, index + pass.length - `${number}]`.length);
      const begun = Number(number) + 1;
      const counted = lastPass.get(own) ?? 0;
      if (begun <= counted) continue;
      loop.passes += begun - counted;
      lastPass.set(own, begun);
    }
  };

  return {
    roots,
    apply(event, now) {
      switch (event.event) {
        case 'agent.started': {
          const { agent, key } = event.data;
          const node = nodeAt(placeOf(key), agent);
          reach(node, key, now);
          applyToRow(node.run, event, now);
          break;
        }
        case 'agent.skipped': {
          if (!isNew('agent.skipped', event.data.key)) break;
          const node = nodeAt(placeOf(event.data.key), event.data.agent);
          reach(node, event.data.key, now);
          applyToRow(node.run, event, now);
          break;
        }
        case 'agent.retrying':
          applyToRow(nodeAt(placeOf(event.data.key), event.data.agent).run, event, now);
          break;
        case 'agent.completed':
        case 'agent.failed': {
          const { agent, key, duration } = event.data;
          const node = nodeAt(placeOf(key), agent);
          // Who watches an execution elsewhere is told of results alone.
          if (node.reached) countPasses(key);
          else reach(node, key, now - duration, false);
          applyToRow(node.run, event, now);
          break;
        }
        case 'foreach.started': {
          const node = nodes.get(placeOf(event.data.key));
          if (!node || !isNew('foreach.started', event.data.key)) break;
          reach(node, event.data.key, now);
          node.items = (node.items ?? 0) + event.data.items;
          break;
        }
        case 'child.started': {
          const node = nodes.get(placeOf(event.data.key));
          if (!node || !isNew('child.started', event.data.key)) break;
          reach(node, event.data.key, now);
          if (!detached.has(node.place)) node.run.active += 1;
          else if (!node.inLoop) close(node, now);
          break;
        }
        case 'child.ended': {
          const node = nodes.get(placeOf(event.data.key));
          if (!node || !isNew('child.ended', event.data.key)) break;
          node.run.active -= 1;
          if (event.data.status === 'completed') node.run.completed += 1;
          else node.run.failed += 1;
          if (!node.inLoop) close(node, now);
          break;
        }
        case 'step.waiting': {
          const node = nodes.get(placeOf(event.data.key));
          if (!node) break;
          reach(node, event.data.key, now);
          node.until = Math.max(node.until ?? 0, event.data.until ?? Number.POSITIVE_INFINITY);
          node.run.active += 1;
          break;
        }
      }
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

/** Whether it is an agent that runs by itself: one with routes only leads to others. */
export function isLeafAgent({ verb, children }: TreeNode): boolean {
  return verb === 'agent' && children.length === 0;
}

export function isLoop({ verb }: TreeNode): boolean {
  return verb === 'foreach' || verb === 'while';
}

/** Agents that a step may lead to. */
function membersOf(step: StepDefinition, agents: EnsembleDefinition['agents']): string[] {
  if (!('agent' in step)) return [];
  const { routes } = step.routes ? step : (agents?.find(({ name }) => name === step.agent) ?? {});
  return [...new Set(routes?.flatMap(({ member }) => member ?? []))];
}

/** Notes on a choice what it led to, where it is made once. */
function choose({ parent, place, inLoop }: TreeNode): void {
  if (!parent || inLoop || (parent.verb !== 'if' && parent.verb !== 'switch')) return;
  const list = place.slice(parent.place.length + 1, place.lastIndexOf('['));
  parent.chosen = list.startsWith('cases.') ? list.slice('cases.'.length) : list;
}
