/** An orchestrator on a storage that can be made to fail, a clock of its own, and what must hold behind every fault. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../../src/adapters/engine/engine-options.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { createLedger, type Ledger } from '../../src/adapters/testing/engine-suite/ledger.ts';
import { labelOf, suiteScripts } from '../../src/adapters/testing/engine-suite/scripts.ts';
import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import type { EnsembleSource } from '../../src/define.ts';
import { isFinal } from '../../src/engine/model/execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import type { Script } from '../../src/operations/code.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { type FaultyStorage, faultyStorage } from './faulty-storage.ts';

/** Where an operation is tried. */
export interface Place {
  readonly name: string;
  create(): Storage;
  /** Another process, whose storage never fails, works beside it. */
  readonly beside?: boolean;
}

/** As a database does it: later, several entries a write, and others may work on it. */
function databaseLike(): Storage {
  const inner = memoryStorage({ shared: true });
  return { ...laterStorage(inner), capabilities: { sharedCommits: true, groupedCommits: true, shared: true } };
}

export const PLACES: readonly Place[] = [
  { name: 'memory', create: () => memoryStorage() },
  { name: 'a shared database', create: databaseLike },
  { name: 'a shared database with another process', create: databaseLike, beside: true },
];

/** Where outages are tried: what answers later, and what answers at once. */
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
  /** What is stored, read past the faults. */
  readonly raw: Storage;
  readonly ledger: Ledger;
  /** Ends that observers were told of, by execution. */
  readonly told: ReadonlyMap<string, readonly string[]>;
  /** Another orchestrator on the same storage, past the faults. */
  open(engine?: EmbeddedEngineOptions): Orchestrator;
  settle(): Promise<void>;
  /** Moves time on until something holds. @returns false when it does not within `mostMs` */
  until(holds: () => unknown, mostMs?: number): Promise<boolean>;
}

export const LEASE_MS = 5000;
/** Longer than a call may take, and the tries behind it. */
export const PATIENCE_MS = 120_000;
const END_KINDS = ['execution.completed', 'execution.failed', 'execution.timeout', 'execution.cancelled'] as const;

export async function makeRig(place: Place, options: RigOptions): Promise<Rig> {
  const clock = manualClock();
  const ledger = createLedger();
  const raw = place.create();
  const faults = faultyStorage(raw, ledger);
  const healthy = faultyStorage(raw, ledger).storage;
  const told = new Map<string, string[]>();
  let processes = 0;
  /** For each step: after how many stored entries its result was there. */
  const scripts = (process: number): Record<string, Script> =>
    Object.fromEntries(
      Object.entries(suiteScripts(clock)).map(([name, script]) => [
        name,
        (context) => {
          const { idempotencyKey, input, execution } = context;
          const { id: executionId } = execution;
          ledger.note({ process, executionId, label: labelOf(context as never), idempotencyKey, input });
          const known = ledger.entries.some(
            (entry) =>
              entry.executionId === executionId &&
              entry.steps.some((step) => step.retryAt === undefined && keyOf(executionId, step.key) === idempotencyKey),
          );
          if (known) throw new Error(`I3: ${execution.agent} began behind its result`);
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
      orchestrator.on(kind, ({ event, data: { id } }) => told.set(id, [...(told.get(id) ?? []), event]));
    }
    return orchestrator;
  };
  const orchestrator = open(faults.storage, options.engine);

  const settle = async () => {
    // Group commit takes a turn, a store that answers later takes another.
    for (let turn = 0; turn < 4; turn++) await hostTurn();
  };

  const rig: Rig = {
    orchestrator,
    clock,
    faults,
    raw,
    ledger,
    told,
    open: (engine) => open(healthy, engine),
    settle,
    async until(holds, mostMs = PATIENCE_MS) {
      const end = clock.monotonic() + mostMs;
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
  if (place.beside) await rig.open().ready();
  return rig;
}

export async function allEnded({ raw }: Rig): Promise<boolean> {
  return (await raw.listExecutions({ limit: 250 })).every(({ status }) => isFinal(status));
}

/**
 * I1: what is stored came to its end. I2, I4, I9: the ledger's. I4: the end that observers heard of is the stored one, told
 * once. A step has its effect once more at most: no fault is worse than a crash.
 */
export async function checkInvariants(rig: Rig, mostEffects: number): Promise<void> {
  rig.ledger.check();
  for (const { id, status } of await rig.raw.listExecutions({ limit: 250 })) {
    if (!isFinal(status)) throw new Error(`I1: ${id} is ${status}, and nobody goes on with it`);
    const ends = rig.told.get(id) ?? [];
    if (ends.length > 1) throw new Error(`I4: observers were told ${ends.length} ends of ${id}: ${ends.join(', ')}`);
    const [end] = ends;
    const wanted = `execution.${status === 'timed_out' ? 'timeout' : status}`;
    if (end !== undefined && end !== wanted) throw new Error(`I4: observers were told ${end}, and ${wanted} is stored`);
    const steps = await rig.raw.listSteps(id, { limit: 1000, notes: true });
    if (new Set(steps.map(({ key }) => key)).size !== steps.length)
      throw new Error(`I2: a key of ${id} is stored twice`);
  }
  const attempts = new Map<string, number>();
  for (const { executionId, label } of rig.ledger.effects) {
    const place = `${executionId} ${label}`;
    attempts.set(place, (attempts.get(place) ?? 0) + 1);
  }
  for (const [place, count] of attempts) {
    if (count > mostEffects) throw new Error(`${place} had its effect ${count} times`);
  }
}

/** As the interpreter derives it. */
function keyOf(executionId: string, stepKey: string): string {
  return bytesToHex(sha256(utf8ToBytes(`${executionId}|${stepKey}`))).slice(0, 32);
}
