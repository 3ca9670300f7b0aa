/** Values that change under a version check: the states of ensembles, and how far each schedule has come. */

import type { JsonObject } from '../../../engine/base/json.ts';
import { readNumber, readObject, type StoredRow } from './columns.ts';

export interface VersionedValue {
  readonly value: JsonObject;
  /** Counts the changes: 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface VersionedChange {
  /** 0 if nothing was stored. */
  readonly expectedVersion: number;
  readonly value: JsonObject;
  readonly updatedAt: number;
}

/** One kind of such values. */
export interface VersionedKind {
  /** The column of the key. */
  readonly column: string;
  /** Names a row in an error. */
  rowName(key: string): string;
}

export const STATES: VersionedKind = { column: 'ensemble', rowName: (ensemble) => `state of ensemble ${ensemble}` };
export const SCHEDULES: VersionedKind = { column: 'name', rowName: (name) => `schedule ${name}` };

export const VERSIONED_COLUMNS = ['value', 'version', 'updated_at'];

/** @throws INTERNAL when a column is damaged */
export function readVersioned(row: StoredRow, rowName: string): VersionedValue {
  return {
    value: readObject(row, 'value', rowName),
    version: readNumber(row, 'version', rowName),
    updatedAt: readNumber(row, 'updated_at', rowName),
  };
}
