/** The ensembles of an orchestrator, as the public `orchestrator.ensembles`. */

import type { CompiledEnsemble } from '../../engine/compiled/compiled-ensemble.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/model/cursor.ts';
import type { EnsembleDefinition } from '../../engine/model/ensemble.ts';
import { NAME_PATTERN } from '../../engine/model/name.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import { refuseUnknownKeys } from '../refuse-unknown-keys.ts';

/** An ensemble in a listing. */
export interface EnsembleItem {
  readonly name: string;
  readonly description?: string;
  /** The hash of the definition. */
  readonly version: string;
  readonly active: boolean;
  /** `code`: passed to `createOrchestrator`, and fixed at run time. */
  readonly source: 'code';
  /** Unix ms at which this process first used it. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly definition: EnsembleDefinition;
}

export interface Ensembles {
  /** @throws NOT_FOUND */
  get(name: string): Promise<EnsembleItem>;
  /** In the order of their names. @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit */
  list(page?: {
    readonly limit?: number;
    readonly cursor?: string;
  }): Promise<{ readonly ensembles: readonly EnsembleItem[]; readonly nextCursor?: string }>;
}

/** @param find - returns a known ensemble, or throws NOT_FOUND */
export function createEnsembles(
  all: ReadonlyMap<string, LoadedEnsemble>,
  find: (name: string) => LoadedEnsemble,
  clock: Clock,
): Ensembles {
  // Read at the first use: a Worker has no clock while its module loads.
  let since: number | undefined;
  const item = ({ name, definition, stored }: CompiledEnsemble): EnsembleItem => {
    since ??= clock.now();
    return {
      name,
      ...(definition.description === undefined ? {} : { description: definition.description }),
      version: stored.version,
      active: true,
      source: 'code',
      createdAt: since,
      updatedAt: since,
      definition: structuredClone(stored.definition) as unknown as EnsembleDefinition,
    };
  };
  return {
    get: async (name) => item(find(name).compiled),
    async list(page = {}) {
      refuseUnknownKeys(page, ['limit', 'cursor'], 'ensembles.list');
      const { limit, cursor } = page;
      const size = pageLimit(limit);
      const after = cursor === undefined ? '' : decodeCursor(cursor, 'ensembles', NAME_PATTERN);
      const names = [...all.keys()].sort().filter((name) => name > after);
      const ensembles = names.slice(0, size).map((name) => item((all.get(name) as LoadedEnsemble).compiled));
      const last = ensembles.at(-1);
      return names.length > size && last
        ? { ensembles, nextCursor: encodeCursor(last.name, 'ensembles') }
        : { ensembles };
    },
  };
}
