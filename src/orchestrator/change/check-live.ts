/** Checks every execution of a store or a server that has not ended against the definitions and scripts of a new process. Reads only. */

import pLimit from 'p-limit';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { readReference } from '../../engine/component/component.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { type Execution, OPEN_STATUSES, type OpenStatus } from '../../engine/execution/execution.ts';
import type { ExecutionHistory } from '../../engine/execution/execution-history.ts';
import { SILENT } from '../../engine/host/logger.port.ts';
import type { ReplayDifference } from '../../engine/running/replay-journal.ts';
import { compileHost } from '../create-orchestrator.ts';
import type { Ensembles } from '../definitions/definitions.ts';
import { type LoadedEnsemble, loadEnsembles, loadSharedAgent } from '../definitions/load-definitions.ts';
import { createRestore } from '../definitions/restore-definitions.ts';
import type { OrchestratorOptions } from '../options/options.ts';
import type { Executions } from '../runs/executions.ts';
import { replayOpen } from './replay-open.ts';

/** The executions that are checked: those of a store, or of a server. */
export interface LiveSource {
  readonly executions: Pick<Executions, 'list' | 'definition' | 'history'>;
  readonly ensembles: Pick<Ensembles, 'get'>;
  readonly components: {
    /** @param ref - a version, `latest` or an environment @throws NOT_FOUND, VERSION_NOT_FOUND */
    version(name: string, ref: string, key?: string): Promise<unknown>;
  };
}

/** What becomes of one execution. */
export interface CheckedExecution {
  readonly executionId: string;
  readonly ensemble: string;
  readonly status: OpenStatus;
  /** The hash of its definition. */
  readonly version: string;
  /** `continues`: the new process can run its definition. `stranded`: it can't; `lacks` says why. */
  readonly verdict: 'continues' | 'stranded';
  readonly lacks?: string;
  /** Whether it has the new definition already, or could be moved to it. */
  readonly move: 'same' | 'can' | 'cannot';
  /** Why it can't be moved. */
  readonly difference?: ReplayDifference;
}

export interface LiveCheck {
  readonly checked: number;
  readonly continues: number;
  readonly stranded: number;
  /** How many of those with another definition could be moved, and could not. */
  readonly canMove: number;
  readonly cannotMove: number;
  /** Those that are stranded, and those that can't be moved. */
  readonly executions: readonly CheckedExecution[];
}

const PAGE = 250;
const AT_ONCE = 8;

/** @param options - of the new process. @throws INVALID_DEFINITION, NOT_CONFIGURED for definitions that can't be loaded */
export function createLiveCheck(options: OrchestratorOptions) {
  const host = compileHost(options);
  const ensembles = loadEnsembles(options.ensembles ?? [], host);
  const agents = new Map<string, LoadedEnsemble>();
  for (const [name, agent] of host.sharedAgents) if (!agent.routes) agents.set(name, loadSharedAgent(agent, host));
  /** @param ensemble - only its executions */
  return async (source: LiveSource, ensemble?: string): Promise<LiveCheck> => {
    /** Whether an ensemble was created at run time: then it is in the store, whatever is deployed. */
    const isStored = async (name: string): Promise<boolean> => {
      try {
        return !ensembles.has(name) && (await source.ensembles.get(name)).source === 'store';
      } catch (error) {
        if (isOrchestratorError(error, 'NOT_FOUND')) return false;
        throw error;
      }
    };
    const restore = createRestore({
      ...{ code: { ensemble: ensembles, agent: agents }, host, logger: SILENT },
      hasEnsemble: async (name) => ensembles.has(name) || (await isStored(name)),
      onlyQueues: () => false,
    });
    if (
      ensemble !== undefined &&
      agentAlone(ensemble) === undefined &&
      !ensembles.has(ensemble) &&
      !(await isStored(ensemble))
    )
      throw new OrchestratorError('NOT_FOUND', `there is no ensemble \`${ensemble}\``);
    const counts = { checked: 0, continues: 0, stranded: 0, canMove: 0, cannotMove: 0 };
    const executions: CheckedExecution[] = [];
    const limit = pLimit(AT_ONCE);
    /** What the new process lacks for a definition, by its hash and ensemble. */
    const lacking = new Map<string, Promise<string | undefined>>();
    const lacksFor = (record: Execution<unknown>): Promise<string | undefined> => {
      const key = `${record.version} ${record.ensemble}`;
      const known = lacking.get(key) ?? findLack(record);
      lacking.set(key, known);
      return known;
    };
    const pinned = new Map<string, Promise<EnsembleDefinition>>();
    const definitionOf = ({ id, ensemble: name, version }: Execution<unknown>): Promise<EnsembleDefinition> => {
      const key = `${version} ${name}`;
      const known = pinned.get(key) ?? source.executions.definition(id).then((found) => found.definition);
      pinned.set(key, known);
      return known;
    };
    const findLack = async (record: Execution<unknown>): Promise<string | undefined> => {
      const { ensemble: name, version } = record;
      const current = currentOf(name);
      if (current?.compiled.stored.version === version) return missingComponent(current);
      if (agentAlone(name) !== undefined)
        return current ? undefined : `there is no shared agent \`${agentAlone(name)}\``;
      const definition = await definitionOf(record);
      const stored = { version, definition: definition as EnsembleDefinition & JsonObject, needs: [] };
      const restored = await restore(stored, name);
      return typeof restored === 'string' ? restored : missingComponent(restored);
    };
    /** Of several versions of a component, one is enough to look at. */
    const missingComponent = async ({ compiled }: LoadedEnsemble): Promise<string | undefined> => {
      for (const { reference, agent } of compiled.components) {
        const read = readReference(reference);
        if ('problem' in read) continue;
        const { name, ref } = read.reference;
        try {
          await source.components.version(name, ref, 'check');
        } catch (error) {
          const { code, message } = error as { readonly code?: unknown; readonly message?: string };
          // A token that may not read components says nothing about them.
          if (code === 'NOT_FOUND' || code === 'VERSION_NOT_FOUND')
            return `agent \`${agent}\` uses ${reference}: ${message}`;
        }
      }
      return undefined;
    };
    const currentOf = (name: string) => {
      const agent = agentAlone(name);
      return agent === undefined ? ensembles.get(name) : agents.get(agent);
    };
    const check = async (record: Execution<unknown>): Promise<CheckedExecution | undefined> => {
      const { id: executionId, ensemble: name, version, status } = record;
      try {
        const lacks = await lacksFor(record);
        const about = { executionId, ensemble: name, version, status: status as OpenStatus };
        const verdict = lacks === undefined ? 'continues' : 'stranded';
        const found = { ...about, verdict, ...(lacks !== undefined && { lacks }) } as const;
        const current = currentOf(name);
        if (current?.compiled.stored.version === version || (!current && (await isStored(name))))
          return { ...found, move: 'same' };
        const difference = await differenceFor(record, current);
        return difference ? { ...found, move: 'cannot', difference } : { ...found, move: 'can' };
      } catch (error) {
        // It has ended and was deleted meanwhile.
        if (isOrchestratorError(error, 'NOT_FOUND')) return undefined;
        throw error;
      }
    };
    const differenceFor = async (record: Execution<unknown>, current: LoadedEnsemble | undefined) => {
      const { ensemble: name, status, waitingFor } = record;
      const none = { expected: name, found: null };
      if (agentAlone(name) !== undefined)
        return { at: 'ensemble', ...none, reason: 'an agent that runs alone has no flow' };
      if (!current) return { at: 'ensemble', ...none, reason: `there is no ensemble \`${name}\` any more` };
      const { execution, steps }: ExecutionHistory = await source.executions.history(record.id);
      const definition = await definitionOf(record);
      const about = { execution, steps, status, waitingFor, omitted: record.waitingForOmitted, moves: record.moves };
      return replayOpen(current, { ...about, definition }, host.env);
    };
    for await (const page of openPages(source, ensemble)) {
      for (const one of await Promise.all(page.map((record) => limit(() => check(record))))) {
        if (!one) continue;
        counts.checked += 1;
        counts[one.verdict] += 1;
        if (one.move !== 'same') counts[one.move === 'can' ? 'canMove' : 'cannotMove'] += 1;
        if (one.verdict === 'stranded' || one.move === 'cannot') executions.push(one);
      }
    }
    return { ...counts, executions };
  };
}

async function* openPages(source: LiveSource, ensemble: string | undefined) {
  for (const status of OPEN_STATUSES) {
    for (let cursor: string | undefined, hasMore = true; hasMore; hasMore = cursor !== undefined) {
      const page = await source.executions.list({
        ...{ status, order: 'oldest', limit: PAGE, values: false },
        ...(ensemble !== undefined && { ensemble }),
        ...(cursor !== undefined && { cursor }),
      });
      yield page.executions;
      cursor = page.nextCursor;
    }
  }
}
