/** Cases of the limits of a Durable Object, in addition to those of the suites. Each runs in a new object. */

import { createOrchestrator } from 'ensemble-orchestrator';
import { durableObjectStorage } from 'ensemble-orchestrator/workers';

const MIB = 1024 * 1024;
/** A text whose JSON takes `bytes` bytes. */
const sized = (bytes) => 'x'.repeat(bytes - 2);
const WORKER = 'own_1';
const DEFINITION = {
  name: 'copy',
  inputs: { text: { type: 'string' } },
  flow: [{ agent: 'make', operation: 'code', config: { script: 'make' }, input: { text: '${input.text}' } }],
  outputs: { made: '${make.output}' },
};

/** @param it - takes the title and the body of a case */
export function limitCases(ctx, it) {
  it('a result or state of more than 2 MiB: INVALID_OUTPUT, and nothing of its batch is stored', async () => {
    const storage = open(ctx);
    accept(storage, 1, null);
    accept(storage, 2, null);
    const step = { key: 'flow[0]', name: 'a', status: 'completed', attempts: 1, startedAt: 1, duration: 1 };
    const state = { ensemble: 'e', expectedVersion: 0, value: { text: sized(2 * MIB) }, updatedAt: 1 };
    const batches = [
      [entry(1, { steps: [{ ...step, output: 1 }] }), entry(2, { steps: [{ ...step, output: sized(2 * MIB + 1) }] })],
      [entry(1, { steps: [{ ...step, output: 1 }], state })],
    ];
    for (const batch of batches) {
      refuses('INVALID_OUTPUT', () => storage.commit(WORKER, batch));
      equal(storage.executions.listSteps(id(1), { limit: 10 }), []);
      equal(storage.state.read('e'), undefined);
    }
    equal(storage.commit(WORKER, [entry(2, { steps: [{ ...step, output: sized(2 * MIB) }] })]), ['stored']);
    equal(storage.executions.getStep(id(2), 'flow[0]').output.length, 2 * MIB - 2);
  });

  it('an input and an output of more than 2 MB together: INVALID_OUTPUT; the execution can end without an output', async () => {
    const storage = open(ctx);
    accept(storage, 1, sized(1.5 * MIB));
    refuses('INVALID_OUTPUT', () => storage.commit(WORKER, [end(1, sized(1.5 * MIB))]));
    equal(storage.executions.getStatus(id(1)).status, 'running');
    equal(storage.commit(WORKER, [end(1, null)]), ['stored']);
  });

  it('an execution with the largest input: is released, claimed, listed, read and ended', async () => {
    const storage = open(ctx);
    accept(storage, 1, sized(2 * MIB));
    refuses('INVALID_OUTPUT', () => accept(storage, 2, sized(2 * MIB + 1)));
    const waitsFor = Array.from({ length: 1000 }, (_, i) => `signal-${i}`.padEnd(64, 'x'));
    const release = { status: 'waiting', dueAt: 5, waitsFor };
    equal(storage.commit(WORKER, [entry(1, { release })]), ['stored']);
    equal(
      storage.signals.put({ id: 's', executionId: id(1), name: waitsFor[7], payload: null, createdAt: 1 }),
      'stored',
    );
    const [claimed] = storage.executions.claim(WORKER, { now: 9, limit: 10, excludeVersions: [] });
    equal(claimed.execution.input.length, 2 * MIB - 2);
    equal(storage.executions.list({ limit: 10 })[0].omitted, ['input']);
    equal(storage.executions.getAccepted(id(1)).input.length, 2 * MIB - 2);
    const error = { code: 'AGENT_FAILED', message: 'ä'.repeat(4096) };
    equal(storage.commit(WORKER, [end(1, null, { epoch: 2, error })]), ['stored']);
    equal(storage.executions.get(id(1)).input.length, 2 * MIB - 2);
  });

  it('objects of any size: come back unchanged; a replaced or deleted object leaves nothing', async () => {
    const { objects } = open(ctx);
    for (const size of [2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 7 * MIB, 4 * MIB, 10]) {
      const content = new Uint8Array(size);
      for (let i = 0; i < size; i += 1009) content[i] = (i + size) % 251;
      objects.put('a', { content, contentType: 'x/y', updatedAt: size });
      const found = objects.get('a');
      equal([found.content.length, found.contentType, found.updatedAt], [size, 'x/y', size]);
      if (!found.content.every((byte, i) => byte === content[i])) throw new Error(`${size} bytes came back changed`);
    }
    objects.put('b', { content: new Uint8Array(5 * MIB), contentType: 'x/y', updatedAt: 1 });
    equal([objects.delete('b'), objects.delete('b'), objects.get('b')], [true, false, undefined]);
    equal(ctx.storage.sql.exec('SELECT count(*) AS parts FROM ensemble_object_parts').toArray(), [{ parts: 0 }]);
  });

  it('a value of more than 2 MiB under a key: INVALID_OUTPUT, and the key keeps its value', async () => {
    const { kv } = open(ctx);
    kv.put('a', 1);
    refuses('INVALID_OUTPUT', () => kv.put('a', sized(2 * MIB + 1)));
    equal(kv.get('a', 1), 1);
    kv.put('a', sized(2 * MIB));
    equal(kv.get('a', 1).length, 2 * MIB - 2);
  });

  it('a run with values that are too large: fails with INVALID_OUTPUT, and its record says so', async () => {
    const make = ({ input: { text } }) => text.repeat(3);
    const options = { ensembles: [DEFINITION], scripts: { make }, storage: durableObjectStorage(ctx) };
    const orchestrator = createOrchestrator(options);
    const refused = await orchestrator.execute('copy', { text: sized(2.5 * MIB) }).catch((error) => error);
    equal(refused.code, 'INVALID_INPUT');
    for (const text of [sized(0.75 * MIB), sized(0.6 * MIB)]) {
      const record = await orchestrator.execute('copy', { text });
      equal([record.status, record.error.code], ['failed', 'INVALID_OUTPUT']);
      equal((await orchestrator.executions.get(record.id)).status, 'failed');
    }
    equal((await orchestrator.execute('copy', { text: 'x' })).output, { made: 'xxx' });
    await orchestrator.close();
  });

  it('a database that a newer version of the library has written to: NOT_CONFIGURED, and nothing is changed', async () => {
    open(ctx).close();
    ctx.storage.sql.exec('UPDATE ensemble_schema SET version = 99');
    refuses('NOT_CONFIGURED', () => open(ctx));
    equal(ctx.storage.sql.exec('SELECT version FROM ensemble_schema').toArray(), [{ version: 99 }]);
  });

  it('a closed storage: OVERLOADED', async () => {
    const storage = open(ctx);
    storage.close();
    refuses('OVERLOADED', () => storage.executions.countQueued(1));
  });
}

/** A storage with a worker. */
function open(ctx) {
  const storage = durableObjectStorage(ctx);
  storage.workers.register(WORKER, { now: 1, leaseUntil: 1e13 });
  return storage;
}

const id = (number) => `exec_${String(number).padStart(26, '0')}`;
const entry = (number, fields) => ({ executionId: id(number), epoch: 1, steps: [], ...fields });
const end = (number, output, { epoch = 1, ...fields } = {}) =>
  entry(number, {
    epoch,
    end: { status: 'completed', output, finishedAt: 9, duration: 1, agents: 0, ...fields },
  });

function accept(storage, number, input) {
  const start = { id: id(number), ensemble: 'e', version: 'v', trigger: { type: 'call' }, input, seed: 's' };
  equal(storage.commit(WORKER, [entry(number, { start: { ...start, createdAt: number } })]), ['stored']);
}

function equal(found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`expected ${b}, got ${a?.slice(0, 300)}`);
}

function refuses(code, call) {
  try {
    call();
  } catch (error) {
    if (error.code === code) return;
    throw error;
  }
  throw new Error(`${code} was expected`);
}
