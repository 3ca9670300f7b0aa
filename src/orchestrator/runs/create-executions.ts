/** Reads and changes the stored executions. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { type Execution, type ExecutionSummary, isFinal } from '../../engine/execution/execution.ts';
import { withoutStack } from '../../engine/execution/execution-error.ts';
import { toAgentResult, withoutValues } from '../../engine/execution/execution-record.ts';
import { type IdSource, normalizeExecutionId } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import { decodeCursor, encodeCursor, pageLimit, readEventId } from '../../engine/storage/cursor.ts';
import type { ExecutionQuery, RecordReader, Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import type { Mover } from '../change/move.ts';
import type { Catalog } from '../definitions/catalog.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { createComplete } from '../operators/complete.ts';
import { checkOperatorOptions, conflict, type OperatorOptions } from '../operators/operator-options.ts';
import { createRetry } from '../operators/retry.ts';
import type { SignalForms } from '../signals/signal-forms.ts';
import { toSignal } from '../signals/signals.ts';
import { createEventTickets } from './event-tickets.ts';
import { readExecutionFilter } from './execution-filter.ts';
import type { ExecutionService } from './execution-service.ts';
import type { Executions, PauseTarget } from './executions.ts';
import { withLimitWaits } from './flow-limits.ts';
import { withPlan } from './handles.ts';
import { listSteps, readStep, STEP_KEY } from './list-steps.ts';
import { readHistory } from './read-records.ts';
import { createStats, type OpenExecutions } from './stats.ts';
import { createStepsAtWork } from './steps-at-work.ts';

const RETRY_KEYS = ['newKeys', 'input', 'from', 'definition'];
const HOUR_MS = 3_600_000;
/** The largest count of {@link Executions.open}. */
const MAX_OPEN = 10_000;

export interface ExecutionsDependencies {
  readonly storage: Pick<Storage, 'executions' | 'signals' | 'tokens' | 'tallies'>;
  /** The same for calls that are not mere reads: it waits longer when it is away. */
  readonly patient: Pick<Storage, 'definitions' | 'executions'>;
  readonly clock: Clock;
  readonly executionService: ExecutionService;
  readonly ids: IdSource;
  readonly forms: SignalForms;
  readonly catalog: Pick<Catalog, 'hasEnsemble' | 'find'>;
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
  readonly mover: Pick<Mover, 'move' | 'targetOf' | 'wake'>;
}

function cannotPause(): OrchestratorError {
  return new OrchestratorError('NOT_CONFIGURED', 'the engine of this orchestrator can not pause executions');
}

function orNotFound<T>(found: T | undefined, id: string): T {
  if (found === undefined) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
  return found;
}

function createFinders({ executions }: { readonly executions: Pick<RecordReader['executions'], 'get' | 'getStatus'> }) {
  return {
    find: async (id: string): Promise<Execution> =>
      cloneJson(orNotFound(await executions.get(normalizeExecutionId(id)), id)),
    statusOf: async (id: string): Promise<ExecutionSummary> =>
      orNotFound(await executions.getStatus(normalizeExecutionId(id)), id),
  };
}

export function createExecutions(dependencies: ExecutionsDependencies): Executions {
  const { storage, patient, clock, executionService, ids, forms, restore } = dependencies;
  const { definitions } = patient;
  const tickets = createEventTickets(storage.tokens, clock);
  const { turns, engine } = executionService;
  const records = engine.records ?? storage;
  const atWork = createStepsAtWork({ ...executionService, clock, definitions, restore });
  const { find, statusOf } = createFinders(records);
  const { move } = dependencies.mover;
  const retry = createRetry({ ...dependencies, definitions });
  const complete = createComplete({ ...dependencies, storage: patient, engine, retry });
  const acting = createFinders(executionService.records);
  const hasMoreAfter = async (id: string, after: string): Promise<boolean> =>
    (await records.executions.listSteps(id, { after, limit: 1 })).length > 0;

  /** The execution with an idempotency key, if it matches the other filters: a listing of its place alone says so. */
  const listByKey = async (key: string, query: ExecutionQuery): Promise<readonly Execution[]> => {
    const id = await records.executions.findByKey(key);
    const found = id === undefined ? undefined : await records.executions.getStatus(id);
    if (!found) return [];
    const { createdAt } = found;
    const { order: _one, since = createdAt, until = createdAt + 1, ...rest } = query;
    // It is the first page, and the only one.
    if (rest.before) return [];
    // No id has a space, so no other execution is between this position and the execution.
    const place = {
      before: { createdAt, id: `${found.id} ` },
      since: Math.max(since, createdAt),
      until: Math.min(until, createdAt + 1),
    };
    return (await records.executions.list({ ...rest, ...place, limit: 1 })).filter((one) => one.id === found.id);
  };

  const changePause = async (change: 'pause' | 'resume', id: string, options: OperatorOptions): Promise<Execution> => {
    checkOperatorOptions(options, `executions.${change}`);
    const before = await acting.statusOf(id);
    if (isFinal(before.status)) throw conflict(before, `execution ${before.id} has ended: it is ${before.status}`);
    const act = engine[change];
    if (!act) throw cannotPause();
    await act(before.id, 'execution');
    return acting.find(id);
  };

  const open = async (): Promise<OpenExecutions> => {
    const { executions } = records;
    const lastHour = await executions.countAccepted(clock.now() - HOUR_MS, MAX_OPEN);
    return { ...(await executions.countOpen(MAX_OPEN)), lastHour };
  };

  /** One that is not known here may have executions all the same. @throws NOT_FOUND */
  const demandEnsemble = async (name: string) => {
    if (await dependencies.catalog.hasEnsemble(name)) return;
    const [known] = await records.executions.list({ ensemble: name, limit: 1 });
    if (!known) await dependencies.catalog.find('ensemble', name);
  };
  const changeAll = async (change: 'pauseAll' | 'resumeAll', of: PauseTarget, options: OperatorOptions) => {
    checkOperatorOptions(options, `executions.${change}`);
    refuseUnknownKeys(of, ['ensemble', 'all'], `executions.${change}`);
    const { ensemble, all } = of as { readonly ensemble?: string; readonly all?: true };
    if ((ensemble === undefined) === (all !== true))
      throw new TypeError(`executions.${change}: give \`{ ensemble: name }\` or \`{ all: true }\``);
    if (ensemble !== undefined) await demandEnsemble(ensemble);
    const act = engine[change];
    if (!act) throw cannotPause();
    return { changed: await act(ensemble) };
  };

  return {
    async cancel(id, options = {}) {
      checkOperatorOptions(options, 'executions.cancel');
      const before = await acting.statusOf(id);
      if (before.status === 'cancelled') return acting.find(id);
      if (isFinal(before.status)) {
        throw conflict(before, `execution ${before.id} has ended: it is ${before.status}`);
      }
      await engine.cancel(before.id);
      return acting.find(id);
    },
    pauseAll: (of, options = {}) => changeAll('pauseAll', of, options),
    resumeAll: (of, options = {}) => changeAll('resumeAll', of, options),
    pauses: async () => (await engine.pauses?.()) ?? [],
    pause: (id, options = {}) => changePause('pause', id, options),
    resume: (id, options = {}) => changePause('resume', id, options),
    async retry(id, options = {}) {
      checkOperatorOptions(options, 'executions.retry', RETRY_KEYS);
      return retry(await acting.statusOf(id), options);
    },
    move,
    async signal(id, name, payload, options) {
      const within = await executionService.openTransaction(options?.transaction);
      const reading = within ? createFinders(within) : acting;
      const execution = await reading.statusOf(id);
      const given = toSignal(execution.id, name, payload, options, { clock, ids });
      const checked = isFinal(execution.status)
        ? given.payload
        : await forms.check(execution, name, given.payload, within?.definitions);
      const sent = { ...given, payload: checked };
      const answer = await (within ? within.signals.put(sent) : engine.signal(sent));
      if (answer === 'stored') return reading.find(id);
      const { status } = await reading.statusOf(id);
      throw conflict({ ...execution, status }, `execution ${execution.id} accepts no more signals: it is ${status}`);
    },
    async complete(id, key, output, options = {}) {
      checkOperatorOptions(options, 'executions.complete');
      return acting.find(await complete(await acting.statusOf(id), key, output, options));
    },
    async delete(id, options = {}) {
      checkOperatorOptions(options, 'executions.delete');
      const { id: executionId } = await acting.statusOf(id);
      if ((await patient.executions.delete([executionId])) > 0) return { id: executionId, deleted: true };
      const now = await acting.statusOf(executionId);
      throw conflict(now, `execution ${executionId} has not ended: it is ${now.status}; cancel it first`);
    },
    get: async (id) =>
      forms.addTo(await withPlan(await withLimitWaits(await find(id), records.executions, clock.now()), records)),
    status: async (id) => cloneJson(await statusOf(id)),
    async list(given = {}) {
      const { query, key, values, size, cursorAfter } = readExecutionFilter(given);
      const found = await (key === undefined ? records.executions.list(query) : listByKey(key, query));
      const shown = found.slice(0, size).map(withoutStackOf);
      const executions = cloneJson(values ? shown : shown.map(withoutAnyValue));
      const last = executions.at(-1);
      return found.length > size && last ? { executions, nextCursor: cursorAfter(last) } : { executions };
    },
    open,
    stats: createStats(storage.tallies, clock, open, demandEnsemble),
    async agent(id, key) {
      const { id: executionId } = await statusOf(id);
      const step = await records.executions.getStep(executionId, String(key));
      if (step && !step.note) return cloneJson(toAgentResult(step));
      throw new OrchestratorError('NOT_FOUND', `execution ${executionId} has no agent run ${key}`);
    },
    async agents(id, given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor'], 'executions.agents');
      const { limit, cursor } = given;
      const { id: executionId } = await statusOf(id);
      const size = pageLimit(limit);
      const filter = `${executionId} agents`;
      const after = cursor === undefined ? undefined : decodeCursor(cursor, filter, STEP_KEY);
      const steps = await records.executions.listSteps(executionId, { after, limit: size + 1 });
      const page = steps.slice(0, size);
      const last = page.at(-1)?.key;
      const agents = page.map((step) => cloneJson(toAgentResult(step)));
      const hasMore = last !== undefined && (steps.length > size || (await hasMoreAfter(executionId, last)));
      return hasMore ? { agents, nextCursor: encodeCursor(last, filter) } : { agents };
    },
    async steps(id, given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor', 'maxOutput'], 'executions.steps');
      return listSteps(records, clock, await statusOf(id), given);
    },
    async step(id, key) {
      const summary = await statusOf(id);
      const step = await readStep(records, clock, summary, String(key));
      if (step) return step;
      throw new OrchestratorError('NOT_FOUND', `execution ${summary.id} has no step ${key}`);
    },
    stepInput: async (id, key) => atWork.inputOf(await statusOf(id), String(key)),
    running: async (id) => atWork.running(await statusOf(id)),
    async definition(id) {
      const { id: executionId, ensemble, version } = await statusOf(id);
      const isFlow = agentAlone(ensemble) === undefined;
      const stored = isFlow ? await definitions.get(version) : undefined;
      if (stored)
        return { ensemble, version, definition: cloneJson(stored.definition) as unknown as EnsembleDefinition };
      const what = isFlow
        ? `the definition ${version} of execution ${executionId} is not stored`
        : `execution ${executionId} ran an agent alone: it has no flow`;
      throw new OrchestratorError('NOT_FOUND', what);
    },
    history: async (id) => readHistory(records, turns, (await statusOf(id)).id),
    async *events(id, options = {}) {
      refuseUnknownKeys(options, ['after', 'signal'], 'executions.events');
      const { after, signal } = options;
      const execution = await statusOf(id);
      yield* executionService.storedEvents(execution.id, readEventId(after), signal);
    },
    async ticket(id, options = {}) {
      refuseUnknownKeys(options, ['holder'], 'executions.ticket');
      return tickets.create((await statusOf(id)).id, options.holder);
    },
    async verifyTicket(id, ticket, options = {}) {
      refuseUnknownKeys(options, ['isOpen'], 'executions.verifyTicket');
      return tickets.verify(normalizeExecutionId(id), String(ticket), options.isOpen === true);
    },
  };
}

/** Only the record of one execution has the stack of its error. */
function withoutStackOf(record: Execution): Execution {
  return record.error ? { ...record, error: withoutStack(record.error) } : record;
}

function withoutAnyValue(record: Execution): Execution {
  return withoutValues(record, true, record.finishedAt !== undefined);
}
