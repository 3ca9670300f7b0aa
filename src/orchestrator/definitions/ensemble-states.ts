/** The states of ensembles, as the public `orchestrator.state`: read, replace, patch and clear them outside of runs. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import { cloneJson, copyJson, type Json, JsonError, type JsonObject } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { StateStore } from '../../engine/storage/storage.port.ts';
import { alwaysChanged, type ChangeOptions, refuseOtherVersion } from '../changes.ts';
import type { Ensembles } from './definitions.ts';

export interface EnsembleState {
  /** The `initial` values of the definition until the first change. */
  readonly state: JsonObject;
  /** Counts the changes. `0` before the first one. A change can expect it (`ifMatch`). */
  readonly version: string;
  /** Unix ms. Absent before the first change. */
  readonly updatedAt?: number;
}

export interface EnsembleStates {
  /** @throws NOT_FOUND for an unknown ensemble, and for one without `state` */
  get(ensemble: string): Promise<EnsembleState>;
  /** Replaces the state. @throws NOT_FOUND; INVALID_REQUEST for anything but an object of JSON; CONFLICT if `ifMatch` is another version */
  set(ensemble: string, state: unknown, options?: ChangeOptions): Promise<EnsembleState>;
  /** Changes parts of the state as RFC 7396 says: null removes a key, objects are merged, and other values are replaced. @throws as `set` */
  patch(ensemble: string, patch: unknown, options?: ChangeOptions): Promise<EnsembleState>;
  /** Sets the state back to the `initial` values of the definition. @throws as `set` */
  clear(ensemble: string, options?: ChangeOptions): Promise<EnsembleState>;
}

/** How often a change is made again because a run changed the state meanwhile. */
const MAX_TRIES = 100;

export function createEnsembleStates(dependencies: {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly ensembles: Pick<Ensembles, 'get'>;
}): EnsembleStates {
  const { store, clock, ensembles } = dependencies;

  /** From the definition as it is stored now, also if it is not active. */
  const initialOf = async (ensemble: string): Promise<JsonObject> => {
    const { state } = (await ensembles.get(ensemble)).definition;
    if (state) return state.initial;
    throw new OrchestratorError(
      'NOT_FOUND',
      `ensemble \`${ensemble}\` keeps no state: its definition has no \`state\``,
    );
  };

  const read = async (ensemble: string): Promise<EnsembleState> => {
    const initial = await initialOf(ensemble);
    const stored = await store.read(ensemble);
    if (!stored) return { state: initial, version: '0' };
    return { state: stored.value, version: String(stored.version), updatedAt: stored.updatedAt };
  };

  const change = async (
    what: string,
    ensemble: string,
    options: ChangeOptions,
    compute: (before: JsonObject, initial: JsonObject) => JsonObject,
  ): Promise<EnsembleState> => {
    refuseUnknownKeys(options, ['ifMatch'], what);
    const initial = await initialOf(ensemble);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const stored = await store.read(ensemble);
      const expectedVersion = stored?.version ?? 0;
      refuseOtherVersion(`the state of \`${ensemble}\``, options, String(expectedVersion));
      const value = compute(stored?.value ?? initial, initial);
      const updatedAt = clock.now();
      if (await store.write(ensemble, { expectedVersion, value, updatedAt })) {
        return { state: cloneJson(value), version: String(expectedVersion + 1), updatedAt };
      }
    }
    throw alwaysChanged(`the state of \`${ensemble}\``);
  };

  return {
    get: async (ensemble) => cloneJson((await read(ensemble)) as unknown as Json) as unknown as EnsembleState,
    async set(ensemble, state, options = {}) {
      const value = readState(state, 'the state');
      return change('state.set', ensemble, options, () => value);
    },
    async patch(ensemble, patch, options = {}) {
      const value = readState(patch, 'the patch');
      return change('state.patch', ensemble, options, (before) =>
        readState(mergePatch(before, value), 'the patched state'),
      );
    },
    clear: (ensemble, options = {}) => change('state.clear', ensemble, options, (_, initial) => initial),
  };
}

function readState(given: unknown, what: string): JsonObject {
  const refuse = (path: string, message: string) => {
    const issues = [{ path, message }];
    const text = `${what}${path === '' ? '' : ` at \`${path}\``} ${message}`;
    return new OrchestratorError('INVALID_REQUEST', text, { details: { issues } });
  };
  try {
    const value = copyJson(given);
    if (isMap(value)) return value;
  } catch (thrown) {
    if (thrown instanceof JsonError) throw refuse(thrown.problem.path, thrown.problem.message);
    throw thrown;
  }
  throw refuse('', 'must be an object');
}

/** @returns a new object; neither argument is changed */
function mergePatch(target: Json, patch: JsonObject): JsonObject {
  const merged = new Map<string, Json>(isMap(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, isMap(value) ? mergePatch(merged.get(key) ?? null, value) : value);
  }
  return Object.fromEntries(merged);
}
