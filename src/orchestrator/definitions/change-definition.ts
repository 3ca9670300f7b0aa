/** Changes of stored definitions, each made again if another change came first. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import { alwaysChanged, type ChangeOptions, refuseOtherVersion } from '../changes.ts';
import { type Catalog, notFound } from './catalog.ts';
import type { Kind, StoredItem } from './stored-definitions.ts';

/** How often a change without `ifMatch` is made again because another change came first. */
const MAX_TRIES = 20;

export interface StoredChange {
  /** @throws NOT_FOUND */
  readStored(name: string): Promise<StoredItem>;
  /** @throws CONFLICT for a definition in code */
  refuseCode(name: string): void;
  /**
   * Reads an item and changes it.
   * @param make - returns undefined if another change came first
   * @throws NOT_FOUND, CONFLICT; what `make` throws
   */
  change<T>(name: string, options: ChangeOptions, make: (item: StoredItem) => Promise<T | undefined>): Promise<T>;
}

export function createStoredChange(kind: Kind, catalog: Catalog): StoredChange {
  const code = catalog.code[kind];

  const readStored: StoredChange['readStored'] = async (name) => {
    const item = NAME_PATTERN.test(name) ? await catalog.stored[kind].read(name) : undefined;
    if (item) return item;
    throw notFound(kind, name, code.keys());
  };

  const refuseCode: StoredChange['refuseCode'] = (name) => {
    if (!code.has(name)) return;
    const message = `${kind} \`${name}\` is defined in code, and can only be changed there`;
    throw new OrchestratorError('CONFLICT', message);
  };

  return {
    readStored,
    refuseCode,
    async change(name, options, make) {
      refuseCode(name);
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const item = await readStored(name);
        refuseOtherVersion(`${kind} \`${name}\``, options, item.version);
        const made = await make(item);
        if (made === undefined) continue;
        catalog.forget(kind, name);
        return made;
      }
      throw alwaysChanged(`${kind} \`${name}\``);
    },
  };
}
