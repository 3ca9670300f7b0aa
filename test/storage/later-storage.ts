/** A storage whose answers come later, each after a turn of the event loop: as a database's would. */

import type { Storage } from '../../src/engine/ports/storage.ts';

/** @param inner - does the work, when its turn has come */
export function laterStorage(inner: Storage): Storage {
  const later = async <T>(call: () => T | Promise<T>): Promise<T> => {
    await new Promise((resolve) => setImmediate(resolve));
    return call();
  };
  return {
    ...inner,
    join: (owner, lease) => later(() => inner.join(owner, lease)),
    renew: (owner, leaseUntil) => later(() => inner.renew(owner, leaseUntil)),
    leave: (owner, now) => later(() => inner.leave(owner, now)),
    recover: (...given) => later(() => inner.recover(...given)),
    commit: (owner, batch) => later(() => inner.commit(owner, batch)),
    claim: (owner, query) => later(() => inner.claim(owner, query)),
    listHeld: (owner) => later(() => inner.listHeld(owner)),
    survey: (owner, except) => later(() => inner.survey(owner, except)),
    countQueued: (limit) => later(() => inner.countQueued(limit)),
    requestCancel: (id, now, end) => later(() => inner.requestCancel(id, now, end)),
    findEnded: (ids) => later(() => inner.findEnded(ids)),
    purge: (query) => later(() => inner.purge(query)),
    putSignal: (signal) => later(() => inner.putSignal(signal)),
    listSignals: (id, query) => later(() => inner.listSignals(id, query)),
    listDeliveries: (executionId) => later(() => inner.listDeliveries(executionId)),
    getAccepted: (id) => later(() => inner.getAccepted(id)),
    getStatus: (id) => later(() => inner.getStatus(id)),
    getExecution: (id, query) => later(() => inner.getExecution(id, query)),
    getStep: (id, key) => later(() => inner.getStep(id, key)),
    skipRuns: (id, count) => later(() => inner.skipRuns(id, count)),
    listEndedWaits: (id, name, behind) => later(() => inner.listEndedWaits(id, name, behind)),
    findSignal: (executionId, id) => later(() => inner.findSignal(executionId, id)),
    listExecutions: (query) => later(() => inner.listExecutions(query)),
    listSteps: (id, page) => later(() => inner.listSteps(id, page)),
    readState: (ensemble) => later(() => inner.readState(ensemble)),
    readSchedule: (name) => later(() => inner.readSchedule(name)),
    advanceSchedule: (name, change) => later(() => inner.advanceSchedule(name, change)),
    putDefinition: (definition) => later(() => inner.putDefinition(definition)),
    getDefinition: (version) => later(() => inner.getDefinition(version)),
    close: () => later(() => inner.close()),
  };
}
