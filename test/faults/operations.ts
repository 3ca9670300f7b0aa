/** Every public operation that calls the storage, as the fault tests call it. */

import { code, echo, ensemble } from '../../src/conformance/engine-suite/steps.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import { EXECUTING } from './executing.ts';
import { awaits, type Operation, only, plain, runs, slow, waits } from './operation.ts';
import type { Rig, RigOptions } from './rig.ts';

/** @returns the id of an execution that has ended */
const ended = async (rig: Rig): Promise<string> => {
  const run = rig.orchestrator.execute('e');
  await rig.until(() => rig.reportedEnds.size > 0);
  return (await run).id;
};

/** @returns the id of a running execution whose first step has a result */
const started = async (rig: Rig): Promise<string> => {
  const { id } = await rig.orchestrator.start('e');
  await rig.until(async () => (await rig.raw.executions.get(id))?.agents.length === 1);
  return id;
};

const oneOf = async (call: Promise<unknown>, ...codes: readonly string[]): Promise<void> => {
  await call.catch((thrown: unknown) => {
    if (!isOrchestratorError(thrown) || !codes.includes(thrown.code)) throw thrown;
  });
};

const cancels = (name: string, options: RigOptions, prepare: (rig: Rig) => Promise<string>): Operation => ({
  name: `executions.cancel: ${name}`,
  options,
  prepare,
  act: (rig, id) => rig.orchestrator.executions.cancel(id),
  // An execution that ended before it saw the request can't be cancelled.
  again: (rig, id) => oneOf(rig.orchestrator.executions.cancel(id), 'CONFLICT'),
});

const all = async (events: AsyncIterable<unknown>): Promise<void> => {
  for await (const _event of events);
};

const token = async ({ orchestrator }: Rig): Promise<string> => {
  const { token: value, id } = await orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] });
  return JSON.stringify({ value, id });
};

export const OPERATIONS: readonly Operation[] = [
  ...EXECUTING,
  cancels('running', only(ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 60_000 } })])), started),
  cancels('waiting', only(waits), async (rig) => {
    const { id } = await rig.orchestrator.start('e');
    await rig.until(async () => (await rig.raw.executions.get(id))?.status === 'waiting');
    return id;
  }),
  cancels(
    'queued',
    only(ensemble([code('b', 'slow', { input: { ms: 60_000 } })]), { engine: { concurrency: 1 } }),
    async ({ orchestrator }) => {
      await orchestrator.start('e');
      return (await orchestrator.start('e')).id;
    },
  ),
  {
    name: 'executions.retry',
    options: only(ensemble([echo('a', 1), code('b', 'boom')])),
    prepare: ended,
    act: async ({ orchestrator }, id) => (await orchestrator.executions.retry(id)).result(),
  },
  {
    name: 'executions.get',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => orchestrator.executions.get(id),
  },
  {
    name: 'executions.status',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => orchestrator.executions.status(id),
  },
  {
    name: 'executions.signal: to a waiting execution',
    options: only(awaits),
    async prepare(rig) {
      const { id } = await rig.orchestrator.start('e');
      await rig.until(async () => (await rig.raw.executions.get(id))?.status === 'waiting');
      return id;
    },
    act: ({ orchestrator }, id) => orchestrator.executions.signal(id, 'go', 1, { idempotencyKey: 'once' }),
    // The first call may have stored the signal, and then the execution has ended.
    again: ({ orchestrator }, id) =>
      oneOf(orchestrator.executions.signal(id, 'go', 1, { idempotencyKey: 'once' }), 'CONFLICT'),
  },
  {
    name: 'executions.list',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }) => orchestrator.executions.list(),
  },
  {
    name: 'executions.agents',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => orchestrator.executions.agents(id),
  },
  {
    name: 'executions.agent',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => orchestrator.executions.agent(id, 'flow[0]'),
  },
  {
    name: 'executions.steps',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => orchestrator.executions.steps(id),
  },
  {
    name: 'executions.history',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => orchestrator.executions.history(id),
  },
  {
    name: 'executions.ticket and verifyTicket',
    options: only(plain),
    prepare: ended,
    async act({ orchestrator: { executions } }, id) {
      const { ticket } = await executions.ticket(id);
      await executions.verifyTicket(id, ticket);
    },
  },
  {
    name: 'executions.events: of an ended execution',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }, id) => all(orchestrator.executions.events(id)),
  },
  {
    name: 'executions.events: of a running execution',
    options: only(slow),
    prepare: started,
    act: ({ orchestrator }, id) => all(orchestrator.executions.events(id)),
  },
  {
    name: 'tokens.create',
    act: ({ orchestrator }) => orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] }),
  },
  {
    name: 'tokens.createFirst',
    act: ({ orchestrator }) => orchestrator.tokens.createFirst({ name: 't', scopes: ['execute:ensembles'] }),
  },
  {
    name: 'tokens.import',
    act: ({ orchestrator }) =>
      orchestrator.tokens.import({ name: 't', scopes: ['execute:ensembles'], hash: '0'.repeat(64) }),
  },
  {
    name: 'tokens.verify',
    prepare: token,
    act: ({ orchestrator }, prepared) => orchestrator.tokens.verify(JSON.parse(prepared).value),
  },
  { name: 'tokens.list', prepare: token, act: ({ orchestrator }) => orchestrator.tokens.list() },
  {
    name: 'tokens.revoke',
    prepare: token,
    act: ({ orchestrator }, prepared) => orchestrator.tokens.revoke(JSON.parse(prepared).id),
    async again({ orchestrator }, prepared) {
      const { id, value } = JSON.parse(prepared);
      await oneOf(orchestrator.tokens.revoke(id), 'NOT_FOUND');
      // A revoked token is never accepted.
      const verified = await orchestrator.tokens.verify(value).then(
        () => 'accepted',
        (thrown) => thrown.code,
      );
      if (verified !== 'UNAUTHORIZED') throw new Error(`a revoked token: expected UNAUTHORIZED, got ${verified}`);
    },
  },
  { name: 'ready', options: only(plain), act: ({ orchestrator }) => orchestrator.ready(), again: runs(), single: true },
  {
    name: 'ready: with executions that another process released',
    options: only(slow),
    async prepare(rig) {
      const other = rig.open();
      for (let i = 0; i < 3; i++) await other.start('e', { i });
      await rig.clock.advance(100);
      void other.close({ grace: 0 });
      await rig.settle();
      return '';
    },
    act: ({ orchestrator }) => orchestrator.ready(),
    single: true,
  },
  {
    name: 'runDue',
    options: only(slow),
    async prepare(rig) {
      const client = rig.open({ concurrency: 0 });
      for (let i = 0; i < 3; i++) await client.start('e', { i });
      return '';
    },
    act: ({ orchestrator }) => orchestrator.runDue(),
    // `nextDueAt` says when to call it again; an instant that has passed means at once.
    async again({ orchestrator, clock }) {
      for (let calls = 0; calls < 3; calls++) {
        const { nextDueAt } = await orchestrator.runDue();
        if (nextDueAt === undefined || nextDueAt > clock.now()) return;
      }
      throw new Error('three calls of runDue reported due work and did not do it');
    },
    single: true,
  },
  {
    name: 'close: idle',
    options: only(plain),
    prepare: ended,
    act: ({ orchestrator }) => orchestrator.close(),
    closes: true,
  },
  {
    name: 'close: with a run that ends in its grace',
    options: only(slow),
    prepare: started,
    act: ({ orchestrator }) => orchestrator.close(),
    closes: true,
  },
  {
    name: 'close: with a run that does not end in its grace',
    options: only({ ...slow, flow: [echo('a', 1), code('b', 'slow', { input: { ms: 20_000 } }), echo('c', 3)] }),
    prepare: started,
    act: ({ orchestrator }) => orchestrator.close({ grace: 1000 }),
    closes: true,
  },
];
