/** The traffic of ensembles in the store, as the public `ensembles.traffic`. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { canonicalJson, type Json } from '../../engine/base/json/json.ts';
import { type Rollout, type Split, TRAFFIC } from '../../engine/component/component.ts';
import type { StepCount } from '../../engine/component/guard.ts';
import { LATEST_VERSION } from '../../engine/ensemble/definition-version.ts';
import { isPlain, namedSplit, nameOfVersion, type Traffic } from '../../engine/ensemble/traffic.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { FunctionTable } from '../../engine/expression/functions/function-table.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import { createRollouts, type DeploymentStore, type GuardedDeployment, type Rollouts } from '../components/rollouts.ts';
import type { Catalog } from '../definitions/catalog.ts';
import { createStoredChange } from '../definitions/change-definition.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { StoredItem } from '../definitions/stored-definitions.ts';
import { refuseWebhooks } from '../definitions/webhooks-of.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import { type NewTraffic, newTraffic } from './new-traffic.ts';
import { createShadows, type Shadowed } from './shadows.ts';

/** Which versions of an ensemble new executions run. Versions are labels, hashes, or `latest`. */
export interface EnsembleTraffic {
  /** The version that all new executions run; of several, the one with the largest share. `latest`: the newest at each start. */
  readonly version: string;
  /** The shares in percent. Absent: the version has all. */
  readonly split?: Split;
  /** The expression whose value decides which version an execution gets. Absent: the id of the execution. */
  readonly splitBy?: string;
  /** Of a split whose shares stay. */
  readonly guard?: string;
  /** The shares change by themselves. */
  readonly rollout?: Rollout;
  /** How many executions of each version that a guard watches have ended, and failed. */
  readonly counts?: Readonly<Record<string, StepCount>>;
  /** The version that runs dry after each execution. */
  readonly shadow?: string;
  /** What its dry runs have shown. */
  readonly shadowed?: Shadowed;
  /** Unix ms. Absent: nothing was ever set. */
  readonly deployedAt?: number;
  /** Who set it; `guard` for a guard. */
  readonly by?: string;
  readonly message?: string;
  /** The version to which a broken guard leads. */
  readonly previous?: string;
}

/**
 * Says which versions of an ensemble new executions run, from the next start on, in every process. Without `traffic`, it only shows that.
 *
 * @throws NOT_FOUND; CONFLICT for an ensemble in code, which has one version in a process; INVALID_REQUEST; VERSION_NOT_FOUND;
 *   NOT_CONFIGURED if this process can't run one of the versions; FORBIDDEN as `webhooks` says
 */
export type SetTraffic = (name: string, traffic?: NewTraffic) => Promise<EnsembleTraffic>;

export interface TrafficParts {
  readonly set: SetTraffic;
  /** What is done at its time. */
  readonly timed: readonly Pick<Rollouts, 'task' | 'attach'>[];
  /** An execution has ended in this process. */
  ended(execution: Execution): void;
  /** An ensemble was deleted. */
  removed(name: string): Promise<void>;
}

interface TrafficDependencies {
  readonly catalog: Catalog;
  readonly storage: Pick<Storage, 'documents' | 'definitions'>;
  readonly host: { readonly functions?: FunctionTable | undefined };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: Emitter;
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
  /** It is made later. */
  readonly service: () => ExecutionService;
}

export function createTraffic(dependencies: TrafficDependencies): TrafficParts {
  const { catalog, storage, host, clock, logger, restore, service } = dependencies;
  const { documents } = storage;
  const { functions } = host;
  const shadows = createShadows({
    ...{ documents, clock, logger, find: catalog.find },
    trafficOf: async (name) => (await catalog.stored.ensemble.read(name))?.traffic,
    async load(version, ensemble) {
      const definition = await storage.definitions.get(version);
      return definition ? restore(definition, ensemble) : `definition ${version} is not stored`;
    },
    accepted: (id) => service().records.executions.getAccepted(id),
    run: (ensemble, execution) => service().runShadow(ensemble, execution),
  });
  const { change, readStored } = createStoredChange('ensemble', catalog);
  const rollouts = createRollouts({ store: trafficStore(dependencies), documents, clock, logger });

  const show = async ({ name, traffic }: StoredItem): Promise<EnsembleTraffic> => {
    if (!traffic) return { version: LATEST_VERSION };
    const named = (version: string) => nameOfVersion(traffic, version);
    const { version, splitBy, guard, rollout, shadow, deployedAt, by, message, previous } = traffic;
    const split = namedSplit(traffic);
    const hasGuard = guard !== undefined || rollout !== undefined;
    const counted = hasGuard ? await rollouts.counts({ name, environment: TRAFFIC }, traffic) : {};
    const counts = Object.fromEntries(Object.entries(counted).map(([one, count]) => [named(one), count]));
    return {
      version: named(version),
      ...(split && { split }),
      ...(splitBy !== undefined && { splitBy }),
      ...(guard !== undefined && { guard }),
      ...(rollout && { rollout: { ...rollout, version: named(rollout.version) } }),
      ...(hasGuard && { counts }),
      ...(shadow !== undefined && { shadow: named(shadow), shadowed: await shadows.read(name, traffic) }),
      deployedAt,
      ...(by !== undefined && { by }),
      ...(message !== undefined && { message }),
      ...(previous !== undefined && { previous: named(previous) }),
    };
  };

  return {
    timed: [rollouts, shadows],
    async set(name, given) {
      if (catalog.code.ensemble.has(name)) throw onlyStored(name);
      if (given === undefined) return show(await readStored(name));
      const item = await change(name, {}, async (before) => {
        refuseWebhooks(before.definition, given ?? {});
        const made = newTraffic(before, given, { now: clock.now(), functions });
        await catalog.checkTraffic(before, made);
        return writeTraffic(catalog, before, isPlain(made) ? undefined : made);
      });
      return show(item);
    },
    async removed(name) {
      await shadows.remove(name);
      await rollouts.remove({ name, environment: TRAFFIC });
    },
    ended({ id: executionId, ensemble, version, status, trigger }) {
      const { split, shadow } = trigger.traffic ?? {};
      if (status === 'cancelled') return;
      const place = { name: ensemble, environment: TRAFFIC };
      if (split) rollouts.ended(place, version, status !== 'completed', { executionId, ensemble });
      if (shadow !== undefined) shadows.ended({ id: executionId, ensemble, shadow });
    },
  };

  function onlyStored(name: string): OrchestratorError {
    const message = `ensemble \`${name}\` is defined in code, which has one version in a process. To give it several, take it out of the option \`ensembles\` and put it into the store: await orchestrator.ensembles.create(definition, { label: 'v1' })`;
    return new OrchestratorError('CONFLICT', message);
  }
}

async function writeTraffic(
  { stored, forget }: Catalog,
  item: StoredItem,
  traffic: Traffic | undefined,
): Promise<StoredItem | undefined> {
  const { name, tag: _tag, revision, updatedAt, ...content } = item;
  const written = await stored.ensemble.write(name, revision, { ...content, traffic }, updatedAt);
  if (written) forget('ensemble', name);
  return written;
}

/** The traffic of ensembles as deployments, which a guard advances and rolls back. */
function trafficStore({ catalog, logger, events }: TrafficDependencies): DeploymentStore {
  const read = async (name: string) => (await catalog.stored.ensemble.read(name))?.traffic;
  const same = (a: GuardedDeployment, b: Traffic) =>
    canonicalJson(a as unknown as Json) === canonicalJson(b as unknown as Json);
  return {
    kind: 'ensemble-rollout',
    nameOf: (deployment, version) => nameOfVersion(deployment as Traffic, version),
    mayHaveGuard: () => true,
    read: ({ name }) => read(name),
    async move({ name }, expected, deployment) {
      for (;;) {
        const item = await catalog.stored.ensemble.read(name);
        if (!item?.traffic || !same(expected, item.traffic)) return false;
        const { shadow, shadowSince, labels } = item.traffic;
        const next = { ...deployment, ...(shadow !== undefined && { shadow, shadowSince }), labels };
        // Again, if only the definition was changed meanwhile.
        if (await writeTraffic(catalog, item, next)) return true;
      }
    },
    report(_place, change, last) {
      logger.warn({ ...last, ...change }, 'the traffic of an ensemble was rolled back by its guard');
      if (events.hasListeners) events.emit('ensemble.rolledBack', { ...last, ...change });
    },
  };
}
