/** The storage port on open tables. */

import type { MaybePromise } from '../../../../engine/operation/operation.port.ts';
import type { Storage, StorageCapabilities } from '../../../../engine/storage/storage.port.ts';
import { callPart, createParts } from '../../../../engine/storage/storage-methods.port.ts';
import { withStreams } from '../../with-streams.ts';
import type { Tables } from './create-tables.ts';

/**
 * Runs `work` on the open tables, and turns the driver's errors into those of the storage port.
 * @param row - the row that is read, for the message about damage
 */
export type OnTables = <T>(work: (tables: Tables) => MaybePromise<T>, row?: string) => MaybePromise<T>;

/** What the methods read whose first argument is a name. */
const READ_BY_NAME: Readonly<Record<string, string>> = {
  'executions.requestCancel': 'execution',
  'executions.getAccepted': 'execution',
  'executions.getStatus': 'execution',
  'executions.get': 'execution',
  'executions.listSteps': 'the steps of execution',
  'executions.getStep': 'the steps of execution',
  'executions.getSteps': 'the steps of execution',
  'executions.skipSteps': 'the steps of execution',
  'executions.listEndedWaits': 'the steps of execution',
  'signals.list': 'the signals of execution',
  'signals.find': 'the signals of execution',
  'state.read': 'the state of ensemble',
  'schedules.read': 'schedule',
  'definitions.get': 'definition',
};

export function toStorage(on: OnTables, capabilities: StorageCapabilities, close: Storage['close']): Storage {
  const parts = createParts((part, method) => {
    const row = READ_BY_NAME[`${part}.${method}`];
    return (...args) => on<unknown>((tables) => callPart(tables, part, method, args), row && `${row} ${args[0]}`);
  });
  const objects = withStreams(parts.objects);
  return {
    ...parts,
    objects,
    capabilities,
    commit: (worker, batch) => on((tables) => tables.commit(worker, batch)),
    close,
  };
}
