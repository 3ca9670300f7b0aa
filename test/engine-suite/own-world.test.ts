/**
 * The engine suite in a world that an engine brings itself: the data are on a simulated server, and every call is a message to it. The
 * engine under test is the embedded engine; only its world is not the one that the suite has for storages.
 */

import { describe, expect, it } from 'vitest';
import {
  type CommitResult,
  callPart,
  createParts,
  type Storage,
  type StorageParts,
} from '../../src/entries/adapter.ts';
import { type EngineWorld, engineSuite } from '../../src/entries/conformance.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { embeddedEngine, memoryStorage } from '../../src/index.ts';

interface Message {
  readonly part: keyof StorageParts | 'commit';
  readonly method: string;
  readonly args: unknown[];
}

/** A server that answers each message some turns of the event loop later. Messages are copies: nothing is shared with the server. */
function createServer() {
  const storage = memoryStorage({ shared: true });
  let inTransit = 0;
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const send = async (message: Message): Promise<unknown> => {
    inTransit += 1;
    const { part, method, args } = structuredClone(message);
    await turn();
    try {
      const answer =
        part === 'commit' ? storage.commit(...(args as [string, []])) : callPart(storage, part, method, args);
      return structuredClone(await answer);
    } finally {
      await turn();
      inTransit -= 1;
    }
  };
  return { storage, send, isBusy: () => inTransit > 0 };
}

function openWorld(): EngineWorld {
  const { storage, send, isBusy } = createServer();
  return {
    clock: manualClock(),
    reader: storage,
    takeoverMs: 2500,
    isBusy,
    open(process, { longIntervals, ...options }) {
      const remote: Storage = {
        ...storage,
        ...createParts(
          (part, method) =>
            (...args) =>
              process.call(`${part}.${method}`, () => send({ part, method, args })),
        ),
        commit: (...args) =>
          process.commit(args[1], () => send({ part: 'commit', method: '', args }) as Promise<readonly CommitResult[]>),
        close() {},
      };
      const intervals = longIntervals ? { leaseMs: 3_600_000, sweepMs: 600_000 } : { leaseMs: 1500, sweepMs: 500 };
      return { storage: remote, engine: embeddedEngine({ ...intervals, ...options }) };
    },
    close() {},
  };
}

engineSuite({
  name: 'an engine with a world of its own',
  world: openWorld,
  share: { part: 0, of: 6 },
  test: { describe, it },
});

describe('the engine suite in a world of its own', () => {
  const titlesOf = (declare: (titles: string[]) => void) => {
    const titles: string[] = [];
    declare(titles);
    return titles;
  };

  it('leaves out the cases of leases and of stored rows, and nothing else', () => {
    const test = (titles: string[]) => ({
      describe: (_name: string, body: () => void) => body(),
      it: (title: string) => titles.push(title),
    });
    const own = titlesOf((titles) => engineSuite({ name: 'x', world: openWorld, test: test(titles) }));
    const all = titlesOf((titles) =>
      engineSuite({
        name: 'x',
        create: () => ({ connect: () => memoryStorage() }),
        workers: 'many',
        test: test(titles),
      }),
    );
    expect(all.slice(0, own.length)).toEqual(own);
    expect(all.length - own.length).toBeGreaterThan(10);
    expect(all.length - own.length).toBeLessThan(30);
  });
});
