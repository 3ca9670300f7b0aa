/** An orchestrator on a storage that can be made to fail, with its own clock, and the rules that hold after every fault. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../../src/adapters/embedded-engine/engine-options.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { EnsembleSource } from '../../src/authoring/define.ts';
import { createHistory, type History } from '../../src/conformance/engine-suite/world/history.ts';
import { labelOf, suiteScripts } from '../../src/conformance/engine-suite/world/scripts.ts';
import { isFinal } from '../../src/engine/execution/execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { type FaultyStorage, faultyStorage } from './faulty-storage.ts';

/** A kind of storage on which an operation is tried. */
export interface Place {
  readonly name: string;
  create(): Storage;
  /** Another process, whose storage never fails, works on the same storage. */
  readonly withOtherProcess?: boolean;
}

/** Memory storage that behaves as a database: it answers later, writes several entries at once, and is shared. */
function databaseLike(): Storage {
  const inner = memoryStorage({ shared: true });
  return {
    ...laterStorage(inner),
    capabilities: { sharedPromises: true, timers: true, groupedCommits: true, shared: true },
  };
}

export const PLACES: readonly Place[] = [
  { name: 'memory', create: () => memoryStorage() },
  { name: 'a shared database', create: databaseLike },
  { name: 'a shared database with another process', create: databaseLike, withOtherProcess: true },
];

/** Storages for outages: one answers later, one at once. */
export const OUTAGE_PLACES: readonly Place[] = [
  { name: 'a shared database', create: databaseLike },
  { name: 'SQLite', create: () => sqliteStorage({ path: ':memory:' }) },
];

export interface RigOptions {
  readonly ensembles: readonly object[];
  readonly agents?: readonly object[];
  readonly engine?: EmbeddedEngineOptions;
}

export interface Rig {
  readonly orchestrator: Orchestrator;
  readonly clock: ManualClock;
  readonly faults: FaultyStorage;
  /** The storage itself, whose calls never fail. */
  readonly raw: Storage;
  readonly ledger: History;
  /** The ends that observers were notified of, by execution. */
  readonly reportedEnds: ReadonlyMap<string, readonly string[]>;
  /** Another orchestrator on the same storage, whose calls never fail. */
  open(engine?: EmbeddedEngineOptions): Orchestrator;
  settle(): Promise<void>;
  /** Advances time until `holds` answers true. @returns false when it does not within `maxMs` */
  until(holds: () => unknown, maxMs?: number): Promise<boolean>;
}

export const LEASE_MS = 5000;
/** Longer than a call of the storage may take, with its retries. */
export const WAIT_LIMIT_MS = 120_000;
const END_KINDS = ['execution.completed', 'execution.failed', 'execution.timeout', 'execution.cancelled'] as const;

export async function makeRig(place: Place, options: RigOptions): Promise<Rig> {
  const clock = manualClock();
  const ledger = createHistory();
  const raw = place.create();
  const faults = faultyStorage(raw, ledger);
  const healthy = faultyStorage(raw, ledger).storage;
  const reportedEnds = new Map<string, string[]>();
  let processes = 0;
  const scripts = (process: number): Record<string, Script> =>
    Object.fromEntries(
      Object.entries(suiteScripts(clock)).map(([name, script]) => [
        name,
        (context) => {
          const { idempotencyKey, input, execution } = context;
          const { id: executionId } = execution;
          ledger.addEffect({ process, executionId, label: labelOf(context as never), idempotencyKey, input });
          const known = ledger.entries.some(
            (entry) =>
              entry.executionId === executionId &&
              entry.steps.some((step) => step.retryAt === undefined && keyOf(executionId, step.key) === idempotencyKey),
          );
          if (known) throw new Error(`${execution.agent} began after its result was stored`);
          return script(context as never);
        },
      ]),
    );
  const open = (storage: Storage, engine: EmbeddedEngineOptions = {}): Orchestrator => {
    processes += 1;
    const orchestrator = createOrchestrator({
      ensembles: options.ensembles as readonly EnsembleSource[],
      agents: (options.agents ?? []) as never,
      scripts: scripts(processes),
      storage,
      clock,
      engine: embeddedEngine({ leaseMs: LEASE_MS, sweepMs: 1000, ...engine }),
    }) as Orchestrator;
    for (const kind of END_KINDS) {
      orchestrator.on(kind, ({ event, data: { id } }) =>
        reportedEnds.set(id, [...(reportedEnds.get(id) ?? []), event]),
      );
    }
    return orchestrator;
  };
  const orchestrator = open(faults.storage, options.engine);

  const settle = async () => {
    // Group commit takes one turn, a store that answers later takes another.
    for (let turn = 0; turn < 4; turn++) await hostTurn();
  };

  const rig: Rig = {
    orchestrator,
    clock,
    faults,
    raw,
    ledger,
    reportedEnds,
    open: (engine) => open(healthy, engine),
    settle,
    async until(holds, maxMs = WAIT_LIMIT_MS) {
      const end = clock.monotonic() + maxMs;
      await settle();
      while (!(await holds())) {
        const left = end - clock.monotonic();
        if (left <= 0) return false;
        if (clock.nextIn === undefined || clock.nextIn > left) await clock.advance(left);
        else await clock.advanceToNext();
        await settle();
      }
      return true;
    },
  };
  if (place.withOtherProcess) await rig.open().ready();
  return rig;
}

export async function allEnded({ raw }: Rig): Promise<boolean> {
  return (await raw.executions.list({ limit: 250 })).every(({ status }) => isFinal(status));
}

/**
 * Checks the rules that no fault may break: the ledger's rules; every stored execution has ended; observers were notified of its
 * stored end, at most once; no key is stored twice. A step may have its effect once more, as after a crash.
 *
 * @param maxEffects - how often a step may have its effect
 * @throws Error at the first broken rule
 */
export async function checkInvariants(rig: Rig, maxEffects: number): Promise<void> {
  rig.ledger.check();
  for (const { id, status } of await rig.raw.executions.list({ limit: 250 })) {
    if (!isFinal(status)) throw new Error(`${id} is still ${status}; every execution must end`);
    const ends = rig.reportedEnds.get(id) ?? [];
    if (ends.length > 1) throw new Error(`observers were notified of ${ends.length} ends of ${id}: ${ends.join(', ')}`);
    const [end] = ends;
    const wanted = `execution.${status === 'timed_out' ? 'timeout' : status}`;
    if (end !== undefined && end !== wanted)
      throw new Error(`observers of ${id} were notified of ${end}, but ${wanted} is stored`);
    const steps = await rig.raw.executions.listSteps(id, { limit: 1000, notes: true });
    if (new Set(steps.map(({ key }) => key)).size !== steps.length) throw new Error(`a key of ${id} is stored twice`);
  }
  const attempts = new Map<string, number>();
  for (const { executionId, label } of rig.ledger.effects) {
    const place = `${executionId} ${label}`;
    attempts.set(place, (attempts.get(place) ?? 0) + 1);
  }
  for (const [place, count] of attempts) {
    if (count > maxEffects) throw new Error(`${place} had its effect ${count} times, at most ${maxEffects} expected`);
  }
}

/** A step's idempotency key, as the interpreter derives it. */
function keyOf(executionId: string, stepKey: string): string {
  return bytesToHex(sha256(utf8ToBytes(`${executionId}|${stepKey}`))).slice(0, 32);
}
