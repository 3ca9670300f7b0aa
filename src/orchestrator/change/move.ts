/** Gives executions that have not ended another definition, if what is recorded of them replays in it. */

import pLimit from 'p-limit';
import { invalid, isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json } from '../../engine/base/json/json.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import type { Turns } from '../../engine/events/rules/execution-events.ts';
import { type ExecutionMove, isFinal, OPEN_STATUSES, type OpenStatus } from '../../engine/execution/execution.ts';
import type { AttachedEngine } from '../../engine/execution/execution-engine.port.ts';
import { normalizeExecutionId } from '../../engine/execution/id.ts';
import { type Handover, isTakenSignal, type StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { ReplayDifference } from '../../engine/running/replay-journal.ts';
import type { ExecutionQuery, RecordReader, Repin, Storage } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { checkOperatorOptions, type OperatorOptions, saidBy } from '../operators/operator-options.ts';
import { type ExecutionSelection, readExecutionFilter } from '../runs/execution-filter.ts';
import { readRecords } from '../runs/read-records.ts';
import { awaitedSignals, createPayloadCheck } from '../signals/signal-forms.ts';
import { createReadTargets, NO_TARGET, type TargetDependencies, type Targets } from './move-targets.ts';
import { BUSY, replayOpen } from './replay-open.ts';
import { type NameMap, unknownName } from './same-steps.ts';

export interface MoveOptions extends Omit<ExecutionSelection, 'errorCode' | 'unresolved'>, OperatorOptions {
  /** Only this execution. */
  readonly id?: string | undefined;
  /**
   * `latest`, the newest definition; the label of a version; or the hash of a definition that the store has: the `version` of a record.
   * Absent with a `map` of versions: only executions of these versions are moved. Absent with another `map`: `latest`.
   */
  readonly to?: string | undefined;
  /**
   * Old names of agents, signals and child ensembles, and the new ones. An agent at the same position with another name is a difference
   * without it. Where both are versions (a label, a hash or `latest`), executions of the old one are moved to the new one, in place of `to`.
   */
  readonly map?: NameMap | undefined;
  /** Only says what would be moved. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** An execution that was not moved, and why. */
export interface RefusedMove extends ReplayDifference {
  readonly executionId: string;
  readonly ensemble: string;
}

export interface Moves {
  /** How many executions match the filter and have not ended: the sum of the three numbers below. */
  readonly matched: number;
  /** With `dryRun`, how many can be moved. */
  readonly moved: number;
  /** They had the definition already, or have ended meanwhile. */
  readonly unchanged: number;
  readonly refused: number;
  /** The first 1,000. */
  readonly refusals: readonly RefusedMove[];
}

/** What became of one execution. */
export type Moved = 'moved' | 'unchanged' | RefusedMove;

interface MoveDependencies extends TargetDependencies {
  readonly storage: Pick<Storage, 'executions' | 'definitions' | 'signals'>;
  readonly records: RecordReader;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string>>;
  readonly engine: Pick<AttachedEngine, 'signal' | 'runDue' | 'onlyQueues'>;
}

export interface Mover {
  move(options: MoveOptions): Promise<Moves>;
  /** @returns a function that moves one execution. What the options name is read once for all of them */
  prepare(options: HowToMove): MoveOne;
  /** The definition that `to` names. @throws NOT_FOUND, VERSION_NOT_FOUND, NOT_ACTIVE, NOT_CONFIGURED */
  targetOf(ensemble: string, to: string): Promise<LoadedEnsemble>;
  /** Executions may be due that were not: the engine looks for them soon. */
  wake(): void;
}

type HowToMove = Pick<MoveOptions, 'to' | 'map' | 'dryRun' | 'principal' | 'actor'>;
export type MoveOne = (id: string, ensemble: string) => Promise<Moved>;

const KEYS = [
  ...['id', 'ensemble', 'status', 'parentId', 'tag', 'since', 'until', 'search'],
  ...['to', 'map', 'dryRun'],
];
const PAGE = 100;
const AT_ONCE = 8;
const MAX_REFUSALS = 1_000;
const MAX_MOVES = 20;
/** How often an execution is read again that ran on meanwhile. */
const MAX_TRIES = 3;

export function createMover(dependencies: MoveDependencies): Mover {
  const { storage, records, turns, clock, env, engine } = dependencies;
  const wake = createWakeEngine(engine);
  const { executions, definitions } = storage;
  const checkPayload = createPayloadCheck();
  const readTargets = createReadTargets(dependencies);

  const recordsOf = async (id: string): Promise<StepRecord[]> => {
    const steps: StepRecord[] = [];
    for await (const step of readRecords(records, turns, id)) steps.push(step);
    return steps;
  };

  /** The signals of a name that no wait has taken. */
  const earlySignals = async (id: string, taken: TakenIds, name: string) => {
    const sent = await storage.signals.list(id, { name, after: 0, limit: PAGE });
    return sent.filter((signal) => !taken.has(signal.id));
  };

  /** Passes signals that no wait has taken on under their new names. Their ids make a second time the same. */
  const passOn = async (executionId: string, taken: TakenIds, map: NameMap): Promise<void> => {
    for (const [from, name] of Object.entries(map))
      for (const { id, payload, createdAt } of await earlySignals(executionId, taken, from))
        await engine.signal({ id: `${id}>${name}`, executionId, name, payload, createdAt });
  };

  /** A signal that came early must fit the form that its wait has in the definition. */
  const unfitSignal = async (
    { compiled }: LoadedEnsemble,
    id: string,
    taken: TakenIds,
    map: NameMap,
  ): Promise<ReplayDifference | undefined> => {
    const awaited = awaitedSignals(compiled.stored.definition.flow);
    if (awaited === 'any') return undefined;
    for (const [name, form] of awaited) {
      const from = Object.keys(map).filter((old) => map[old] === name);
      for (const old of form?.fields ? [name, ...from] : [])
        for (const { payload } of await earlySignals(id, taken, old))
          try {
            checkPayload(form, name, payload);
          } catch (error) {
            return {
              at: 'signals',
              expected: null,
              found: null,
              reason: `a signal that came early: ${messageOf(error)}`,
            };
          }
    }
    return undefined;
  };

  const moveTo = async (
    target: LoadedEnsemble,
    id: string,
    { map = {}, dryRun = false, ...asked }: Pick<MoveOptions, 'map' | 'dryRun' | 'principal' | 'actor'>,
  ): Promise<'moved' | 'unchanged' | ReplayDifference> => {
    const { stored } = target.compiled;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const pinned = await executions.getPinned(id);
      const accepted = await records.executions.getAccepted(id);
      const record = await records.executions.get(id, { agents: false });
      if (!pinned || !accepted || !record || isFinal(record.status) || pinned.version === stored.version)
        return 'unchanged';
      if (!pinned.isFree) return busy(record.status);
      const before = await definitions.get(pinned.version);
      if (!before) return { ...busy(record.status), reason: `its definition ${pinned.version} is not stored` };
      const steps = await recordsOf(id);
      const taken: TakenIds = new Set(
        steps.filter(isTakenSignal).map(({ output }) => (output as { readonly signal: Json }).signal),
      );
      const { waitingFor = [], omitted, moves = [] } = pinned.handover ?? {};
      const definition = before.definition as unknown as EnsembleDefinition;
      const about = { execution: accepted, steps, status: record.status, waitingFor, omitted, definition, moves };
      const difference =
        unknownName(target.compiled.stored.definition as unknown as EnsembleDefinition, map) ??
        (await replayOpen(target, about, env, map)) ??
        (await unfitSignal(target, id, taken, map));
      if (difference) return difference;
      if (dryRun) return 'moved';
      await definitions.put(stored);
      await passOn(id, taken, map);
      const { by } = saidBy(asked);
      const move: ExecutionMove = {
        ...{ from: pinned.version, to: stored.version, at: clock.now() },
        ...(by !== undefined && { by }),
        ...(Object.keys(map).length > 0 && { map }),
      };
      if (await executions.repin(id, repinOf(pinned.epoch, move, pinned.handover))) {
        // One may have come between.
        await passOn(id, taken, map);
        wake();
        return 'moved';
      }
    }
    return busy('running');
  };

  const moveBy = async (options: HowToMove, targets: Targets, id: string, ensemble: string): Promise<Moved> => {
    const refuse = (difference: ReplayDifference): RefusedMove => ({ executionId: id, ensemble, ...difference });
    const none = { expected: null, found: null };
    if (agentAlone(ensemble) !== undefined)
      return refuse({ at: 'ensemble', ...none, reason: 'an agent that runs alone has no flow' });
    try {
      const found = await targets.of(id, ensemble);
      if (!found) return 'unchanged';
      const moved = await moveTo(found.target, id, { ...options, map: found.names });
      return typeof moved === 'string' ? moved : refuse(moved);
    } catch (error) {
      if (!isOrchestratorError(error) || !NO_TARGET.has(error.code)) throw error;
      return refuse({ at: 'to', ...none, reason: error.message });
    }
  };

  const targetOf: Mover['targetOf'] = async (ensemble, to) => {
    checkTarget(to, undefined, 'definition');
    return readTargets({}).find(ensemble, to);
  };
  const prepare: Mover['prepare'] = (options) => {
    const targets = readTargets(options);
    return (id, ensemble) => moveBy(options, targets, id, ensemble);
  };

  const move: Mover['move'] = async (options) => {
    const queries = readOptions(options);
    const { id, ensemble } = options;
    const targets = readTargets(options);
    const moveOne: MoveOne = (one, of) => moveBy(options, targets, one, of);
    // A wrong name is found before anything is moved.
    if (ensemble !== undefined) await targets.check(ensemble);
    const limit = pLimit(AT_ONCE);
    const outcomes: Record<'moved' | 'unchanged' | 'refused', number> = { moved: 0, unchanged: 0, refused: 0 };
    const refusals: RefusedMove[] = [];
    const take = (outcome: Moved): void => {
      if (typeof outcome === 'string') outcomes[outcome] += 1;
      else {
        outcomes.refused += 1;
        if (refusals.length < MAX_REFUSALS) refusals.push(outcome);
      }
    };
    if (id !== undefined) {
      const found = await records.executions.getStatus(normalizeExecutionId(id));
      if (!found) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
      if (agentAlone(found.ensemble) === undefined) await targets.check(found.ensemble);
      take(await moveOne(found.id, found.ensemble));
    } else {
      for (const query of queries)
        for await (const page of pagesOf(records, {
          ...query,
          until: Math.min(query.until ?? Infinity, clock.now() + 1),
        }))
          for (const outcome of await Promise.all(page.map((one) => limit(() => moveOne(one.id, one.ensemble)))))
            take(outcome);
    }
    const matched = outcomes.moved + outcomes.unchanged + outcomes.refused;
    return { matched, ...outcomes, refusals };
  };
  return { move, prepare, targetOf, wake };
}

/** The ids of the signals that waits have taken. */
type TakenIds = ReadonlySet<Json>;

/** @returns a function that lets the engine look for what is due soon. Calls meanwhile lead to one more look */
function createWakeEngine(engine: Pick<AttachedEngine, 'runDue' | 'onlyQueues'>): () => void {
  let waking: 'no' | 'once' | 'again' = 'no';
  const wake = (): void => {
    if (engine.onlyQueues) return;
    if (waking !== 'no') {
      waking = 'again';
      return;
    }
    waking = 'once';
    const next = () => {
      const isAgain = waking === 'again';
      waking = 'no';
      if (isAgain) wake();
    };
    engine.runDue(0).then(next, next);
  };
  return wake;
}

function busy(found: string): ReplayDifference {
  return { at: 'status', expected: 'waiting', found, reason: BUSY };
}

/** The execution is due at once: what it waits for may have changed, and the store knows only what it waited for before. */
function repinOf(epoch: number, move: ExecutionMove, before: Handover | undefined): Repin {
  const { moves = [], waitingFor = [], ...rest } = before ?? { waited: 0, recoveries: 0 };
  const { map = {} } = move;
  const isRenamed = (name: string | undefined): name is string => name !== undefined && Object.hasOwn(map, name);
  const handover: Handover = {
    ...rest,
    waitingFor: waitingFor.map((wait) => (isRenamed(wait.name) ? { ...wait, name: map[wait.name] as string } : wait)),
    moves: [...moves, move].slice(-MAX_MOVES),
  };
  return { epoch, from: move.from, to: move.to, handover, dueAt: move.at };
}

/** The open executions of a query, the oldest first. What is accepted meanwhile does not count. */
export async function* pagesOf({ executions }: RecordReader, query: Omit<ExecutionQuery, 'limit'>) {
  for (let before: ExecutionQuery['before']; ; ) {
    const page = await executions.list({ ...query, order: 'oldest', limit: PAGE, ...(before && { before }) });
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    before = { createdAt: last.createdAt, id: last.id };
  }
}

/** @returns a query for each status @throws INVALID_REQUEST, TypeError */
function readOptions(options: MoveOptions): readonly Omit<ExecutionQuery, 'limit'>[] {
  checkOperatorOptions(options, 'executions.move', KEYS);
  const { id, to, map, dryRun, principal: _by, actor: _name, reason: _why, source: _from, ...filter } = options;
  if (dryRun !== undefined && typeof dryRun !== 'boolean') throw invalid('`dryRun` must be true or false');
  checkTarget(to, map);
  const { limit: _limit, status, ...query } = readExecutionFilter(filter).query;
  if (id !== undefined && (status !== undefined || Object.keys(query).length > 0))
    throw invalid('executions.move takes an `id` or filters, not both');
  if (id === undefined && status === undefined && Object.keys(query).length === 0)
    throw invalid('executions.move needs an `id` or at least one filter, such as `ensemble`');
  if (status !== undefined && isFinal(status))
    throw invalid(`\`status\` must be ${OPEN_STATUSES.join(', ')}: \`${status}\` has ended`);
  const statuses: readonly OpenStatus[] = status === undefined ? OPEN_STATUSES : [status as OpenStatus];
  return statuses.map((one) => ({ ...query, status: one }));
}

/** @throws INVALID_REQUEST */
export function checkTarget(to: string | undefined, map: NameMap | undefined, option = 'to'): void {
  const mayLack = to === undefined && map !== undefined;
  if (!mayLack && (typeof to !== 'string' || to === ''))
    throw invalid(`\`${option}\` must be \`latest\`, or the label or the hash of a version`);
  if (map !== undefined && !(isMap(map as Json) && Object.values(map).every((name) => typeof name === 'string')))
    throw invalid('`map` must have the new name of each old one, such as { charge: "pay" }');
}
