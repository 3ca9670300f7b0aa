/** How far each schedule has come. */

import type { ScheduleStore } from '../../../engine/ports/storage.ts';
import { readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

export function schedulesTable(connection: SqlConnection, namespace: string): ScheduleStore {
  const select = connection.prepare(
    'SELECT value, version, updated_at FROM ensemble_schedules WHERE namespace = ? AND name = ?',
  );
  const insert = connection.prepare(`
    INSERT INTO ensemble_schedules (namespace, name, version, updated_at, value) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT DO NOTHING`);
  const update = connection.prepare(`
    UPDATE ensemble_schedules SET version = version + 1, updated_at = ?, value = ?
    WHERE namespace = ? AND name = ? AND version = ?`);
  return {
    read(name) {
      const [row] = select.all([namespace, toTextColumn(name)]);
      if (!row) return undefined;
      const what = `schedule ${name}`;
      return {
        value: readObject(row, 'value', what),
        version: readNumber(row, 'version', what),
        updatedAt: readNumber(row, 'updated_at', what),
      };
    },
    advance(name, { expectedVersion, value, updatedAt }) {
      const [key, json] = [toTextColumn(name), toJsonColumn(value)];
      if (expectedVersion === 0) return insert.run([namespace, key, updatedAt, json]) > 0;
      return update.run([updatedAt, json, namespace, key, expectedVersion]) > 0;
    },
  };
}
