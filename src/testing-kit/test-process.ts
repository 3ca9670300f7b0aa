/** The simulated process of a test orchestrator: it can crash, and what its steps do after that has no effect on the store. */

import { hostTurn, joinClock, type ManualClock } from '../adapters/clock/manual-clock.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { HttpClient } from '../engine/host/http.port.ts';
import type { MailSender } from '../engine/operation/mail.port.ts';
import type { ModelRequest } from '../engine/operation/model.port.ts';
import type { AnyOperation, OperationContext } from '../engine/operation/operation.port.ts';
import type { SmsSender } from '../engine/operation/sms.port.ts';
import type { Storage } from '../engine/storage/storage.port.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';
import { createIdleWatch, type WhyStuck } from './idle-watch.ts';
import { mapMembers } from './map-members.ts';
import { changeStorage } from './processes/change-storage.ts';
import { controlProcess, ofProcess, type ProcessControl } from './processes/process-control.ts';

/** What the process shares with the world around it. */
export interface Surroundings {
  readonly clock: ManualClock;
  readonly storage: Storage;
  readonly http: HttpClient;
  readonly scripts: NonNullable<OrchestratorOptions['scripts']>;
  readonly operations: NonNullable<OrchestratorOptions['operations']>;
  readonly bindings: OrchestratorOptions['bindings'];
  readonly models: OrchestratorOptions['models'];
  readonly mail: OrchestratorOptions['mail'];
  readonly sms: OrchestratorOptions['sms'];
  readonly pdf: OrchestratorOptions['pdf'];
  /** Whether time advances while a result is awaited and nothing is in flight. */
  readonly autoAdvance: boolean;
}

export interface TestProcess {
  /** The options of its orchestrator: every call that leaves the process goes through them. */
  readonly ports: OrchestratorOptions;
  /** Why it refuses every call. Undefined until it has crashed. */
  readonly crashed: Error | undefined;
  /** The result, while time advances. Rejects when the process crashes first. @param whyStuck - see `driveUntil` */
  awaited<R>(result: Promise<R>, whyStuck?: WhyStuck): Promise<R>;
  /** The process has ended by itself. */
  leave(): void;
  /**
   * Ends the process as a power cut does: nothing more is written, released or cancelled. Resolves when its calls that had reached
   * the storage are over, and its worker counts as dead.
   */
  crash(): Promise<void>;
}

export function startTestProcess(world: Surroundings): TestProcess {
  const { clock, storage, autoAdvance } = world;
  const watch = createIdleWatch(clock);
  const leave = joinClock(clock);
  const control = controlProcess({ clock, fault: undefined, onCommit() {}, onKill() {} });
  const workers = new Set<string>();
  const pending = new Set<(error: Error) => void>();
  let crashed: Error | undefined;

  const noted = changeStorage(storage, {
    workers: {
      register(worker, lease) {
        workers.add(worker);
        return storage.workers.register(worker, lease);
      },
    },
  });
  const bindings = Object.entries(world.bindings ?? {}).map(([name, port]) => {
    return [name, endsWith(control, watch.watchPort(port))] as const;
  });
  // A model server is reached through `http`.
  const models = Object.entries(world.models ?? {}).map(([name, model]) => {
    if (!('generate' in model)) return [name, model] as const;
    const { prices } = model;
    const watched = endsWith(control, watch.watchPort(model));
    const generate = (request: ModelRequest) => watched.generate(request);
    return [name, { ...(prices && { prices }), generate }] as const;
  });
  const mail = Object.entries(world.mail ?? {}).map(([name, sender]) => {
    const { settings, check } = sender;
    const watched = endsWith(control, watch.watchPort(sender));
    const send: MailSender['send'] = (message, options) => watched.send(message, options);
    const ready = () => sender.ready?.();
    const close = () => sender.close?.();
    const about = { ...(settings && { settings }), ...(check && { check: check.bind(sender) }) };
    return [name, { ...about, send, ready, close }] as const;
  });
  const sms = Object.entries(world.sms ?? {}).map(([name, sender]) => {
    const watched = endsWith(control, watch.watchPort(sender));
    const send: SmsSender['send'] = (message, options) => watched.send(message, options);
    return [name, { send }] as const;
  });
  const scripts = Object.entries(world.scripts).map(
    // A script may have schemas.
    ([name, script]) => [name, Object.assign(control.script(watch.watchCall(script)), { ...script })] as const,
  );
  const processClock: Clock = { ...control.clock, turn: control.script(watch.watchCall(() => clock.turn())) };
  return {
    ports: {
      clock: processClock,
      storage: watch.watchPort(ofProcess(control, noted)),
      http: endsWith(control, watch.watchPort(world.http)),
      scripts: Object.fromEntries(scripts),
      operations: world.operations.map((operation) => inProcess(watch.watchOperation(operation), control)),
      ...(world.models && { models: Object.fromEntries(models) }),
      ...(world.mail && { mail: Object.fromEntries(mail) }),
      ...(world.sms && { sms: Object.fromEntries(sms) }),
      ...(world.pdf && { pdf: endsWith(control, watch.watchPort(world.pdf)) }),
      ...(world.bindings && { bindings: Object.fromEntries(bindings) }),
    },
    get crashed() {
      return crashed;
    },
    leave,
    awaited<R>(result: Promise<R>, whyStuck?: WhyStuck) {
      if (crashed) return Promise.reject(crashed);
      const driven = autoAdvance ? watch.driveUntil(result, whyStuck) : result;
      let refuse: (error: Error) => void = () => {};
      const answer = new Promise<R>((resolve, reject) => {
        refuse = reject;
        driven.then(resolve, reject);
      });
      const end = (error: Error) => {
        // The test may have forgotten this call.
        answer.catch(() => {});
        refuse(error);
      };
      pending.add(end);
      const settled = () => void pending.delete(end);
      driven.then(settled, settled);
      return answer;
    },
    async crash() {
      if (crashed) throw crashed;
      crashed = new Error(
        'this orchestrator has crashed: use the one that `crash()` returned, and its `result(id)` for executions that were started here',
      );
      control.kill();
      leave();
      watch.stop();
      for (const end of pending) end(crashed);
      while (control.inFlight > 0) await hostTurn();
      await buryWorkers(storage, workers, clock.now());
    },
  };
}

/** Removes the workers of a dead process as other processes do when its lease is over. No execution is blamed for its death. */
async function buryWorkers({ workers }: Storage, dead: ReadonlySet<string>, now: number): Promise<void> {
  if (dead.size === 0) return;
  for (const worker of dead) await workers.renew(worker, now);
  await workers.reclaimFromDead('', now);
  // They are removed; this gives back what their handle holds for them, such as a lock.
  for (const worker of dead) await workers.unregister(worker, now);
}

/** An operation whose attempts, and the parts of them, are never answered after the process has died. */
function inProcess(operation: AnyOperation, control: ProcessControl): AnyOperation {
  const run = control.script((context: OperationContext) => operation.run(endsWith(control, context)));
  return mapMembers(operation, (value, key) => (key === 'run' ? run : value));
}

/** A port whose calls are never answered after the process has died. */
function endsWith<P extends object>(control: ProcessControl, port: P): P {
  return mapMembers(port, (value) =>
    typeof value === 'function'
      ? control.script((...args: unknown[]) => Reflect.apply(value, port, args) as unknown)
      : value,
  );
}
