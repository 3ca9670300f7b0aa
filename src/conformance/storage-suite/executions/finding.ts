/** Storage suite: finding executions by key, tag, time and the beginning of an id or a tag. Own ids do not sort by time. */

import type { ExecutionError } from '../../../engine/execution/execution.ts';
import { MAX_MATCHES } from '../../../engine/execution/execution.ts';
import { retryKeyOf } from '../../../engine/execution/start-once.ts';
import type { NewExecution } from '../../../engine/execution/stored-execution.ts';
import type { ExecutionQuery, Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  refuses,
  register,
  type StorageCase,
  same,
  starting,
  T0,
  WORKER,
} from '../context.ts';

type Filter = Omit<ExecutionQuery, 'limit'>;

const idsOf = async (storage: Storage, filter: Filter, limit = 100) =>
  (await storage.executions.list({ ...filter, limit })).map(({ id }) => id);

/** A text that no compression makes short, the same at each call. */
function randomText(length: number): string {
  let seed = 1;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return (seed % 36).toString(36);
  };
  return Array.from({ length }, next).join('');
}

/** Accepts executions under own ids, each an instant later. The order of their ids is another one. */
async function acceptOwn(storage: Storage, all: Readonly<Record<string, Partial<NewExecution>>>): Promise<void> {
  let number = 0;
  for (const [id, fields] of Object.entries(all)) {
    number += 1;
    await accept(storage, execution(number, { id, ...fields }));
  }
}

export function findingCases(it: StorageCase): void {
  it('findByKey: the execution that was accepted with this key, undefined for any other key', async (storage) => {
    await accept(storage, execution(1, { idempotencyKey: 'a' }));
    await enqueue(storage, execution(2, { idempotencyKey: '"ä\u0000' }));
    await accept(storage, execution(3));
    same(await storage.executions.findByKey('a'), executionId(1), 'a');
    same(await storage.executions.findByKey('"ä\u0000'), executionId(2), 'a key with a quote and a NUL');
    for (const other of ['A', 'b', '', '"ä', 'constructor'])
      same(await storage.executions.findByKey(other), undefined, JSON.stringify(other));
  });

  it('getAccepted, claim and list: return the key and the tags, in the order in which they were given', async (storage) => {
    await register(storage);
    const accepted = execution(1, { idempotencyKey: 'key', tags: ['z', 'customer=7', '"ä 漢'] });
    await enqueue(storage, accepted);
    same(await storage.executions.getAccepted(accepted.id), accepted, 'accepted');
    same((await claim(storage))[0]?.execution, accepted, 'claimed');
    same((await storage.executions.get(accepted.id))?.tags, accepted.tags, 'record');
    same((await storage.executions.list({ limit: 10 }))[0]?.tags, accepted.tags, 'listing');
    await accept(storage, execution(2));
    same((await storage.executions.get(executionId(2)))?.tags, [], 'record without tags');
  });

  it('get, getStatus, requestCancel and listSteps: take own ids', async (storage) => {
    const id = 'order:7-..a';
    await accept(storage, execution(1, { id }));
    await commitOne(storage, { executionId: id, epoch: 1, steps: [], end: end() });
    same((await storage.executions.get(id))?.status, 'completed', 'record');
    same((await storage.executions.getStatus(id))?.id, id, 'status');
    same(await storage.executions.listSteps(id, { limit: 10 }), [], 'steps');
    same(await storage.executions.requestCancel(id, T0, end()), 'completed', 'status after a request');
  });

  it('list: newest first by `createdAt`, whatever the ids are, in pages', async (storage) => {
    await acceptOwn(storage, { m: {}, z: {}, a: {}, exec_00000000000000000000000009: {}, b: {} });
    await accept(storage, execution(6, { id: 'c', createdAt: T0 + 2 }));
    const expected = ['b', 'exec_00000000000000000000000009', 'a', 'z', 'c', 'm'];
    same(await idsOf(storage, {}), expected, 'all');
    const seen: string[] = [];
    for (let before: ExecutionQuery['before']; ; ) {
      const page = await storage.executions.list({ limit: 2, ...(before && { before }) });
      if (page.length === 0) break;
      seen.push(...page.map(({ id }) => id));
      before = page.at(-1);
    }
    same(seen, expected, 'in pages');
  });

  it('list: `tag` selects by one whole tag', async (storage) => {
    const tags = { z: ['vip', 'a=1'], m: ['VIP', 'vip2'], a: ['a=1', 'vip'], k: [], '0': ['"', "'", '%', '漢'] };
    for (const [at, [id, own]] of Object.entries(tags).entries())
      await accept(storage, execution(at, { id, ...(own.length > 0 && { tags: own }) }));
    same(await idsOf(storage, { tag: 'vip' }), ['a', 'z'], 'vip');
    same(await idsOf(storage, { tag: 'a=1' }, 1), ['a'], 'the first of a=1');
    same(await idsOf(storage, { tag: 'a=1', before: { createdAt: T0 + 2, id: 'a' } }), ['z'], 'the rest of a=1');
    for (const tag of ['"', "'", '%', '漢']) same(await idsOf(storage, { tag }), ['0'], `tag ${tag}`);
    for (const tag of ['vi', 'a=', 'none']) same(await idsOf(storage, { tag }), [], `tag ${tag}`);
  });

  it('list: `since` is the first instant, and `until` the first one after', async (storage) => {
    await acceptOwn(storage, { d: { tags: ['t'] }, c: { tags: ['t'] }, b: {}, a: { tags: ['t'] } });
    same(await idsOf(storage, { since: T0 + 2 }), ['a', 'b', 'c'], 'since');
    same(await idsOf(storage, { until: T0 + 3 }), ['c', 'd'], 'until');
    same(await idsOf(storage, { since: T0 + 2, until: T0 + 4 }), ['b', 'c'], 'both');
    same(await idsOf(storage, { since: T0 + 2, until: T0 + 2 }), [], 'an empty span');
    same(await idsOf(storage, { since: T0 + 2, tag: 't' }), ['a', 'c'], 'with a tag');
    const before = { createdAt: T0 + 3, id: 'b' };
    same(await idsOf(storage, { until: T0 + 9, before }), ['c', 'd'], '`before` is earlier than `until`');
    same(await idsOf(storage, { until: T0 + 2, before }), ['d'], '`until` is earlier than `before`');
  });

  it('list: `search` finds the beginnings of ids and tags, each execution once, newest first', async (storage) => {
    await acceptOwn(storage, {
      'order-2': { tags: ['order-x', 'order-y'] },
      other: { tags: ['order-1'] },
      'order-1': {},
      Order: { tags: ['ord'] },
      last: { tags: ['shop:order'] },
    });
    same(await idsOf(storage, { search: 'order-' }), ['order-1', 'other', 'order-2'], 'order-');
    same(await idsOf(storage, { search: 'ord' }, 2), ['Order', 'order-1'], 'the first two of ord');
    same(await idsOf(storage, { search: 'order-', since: T0 + 2 }), ['order-1', 'other'], 'with since');
    same(await idsOf(storage, { search: 'order-', tag: 'order-1' }), ['other'], 'with a tag');
    for (const search of ['%', '_', 'order-3', '\u{10ffff}']) same(await idsOf(storage, { search }), [], search);
  });

  it('list: `errorCode` selects what ended with an error of exactly this code', async (storage) => {
    const errors: Readonly<Record<string, ExecutionError>> = {
      a: { code: 'TIMEOUT', message: 'too late' },
      b: { code: 'TIME', message: 'says "code":"TIMEOUT" and {"code":"TIMEOUT"}', agent: 'TIMEOUT' },
      c: { message: '"code":"TIMEOUT"', code: 'OTHER', details: { code: 'TIMEOUT' } },
      d: { code: 'TIMEOUT', message: '', details: { big: 'x'.repeat(20_000) } },
      e: { code: 'TIMEOUT', message: 'of a run' },
      // An index of Postgres takes no text of this length.
      h: { code: randomText(20_000), message: 'of a host' },
    };
    await acceptOwn(storage, { ...Object.fromEntries(Object.keys(errors).map((id) => [id, {}])), f: {}, g: {} });
    for (const [executionId, error] of Object.entries(errors)) {
      const status = executionId === 'e' ? 'timed_out' : 'failed';
      await commitOne(storage, { executionId, epoch: 1, steps: [], end: end({ status, error }) });
    }
    await commitOne(storage, { executionId: 'f', epoch: 1, steps: [], end: end({ output: { code: 'TIMEOUT' } }) });
    same(await idsOf(storage, { errorCode: 'TIMEOUT' }), ['e', 'd', 'a'], 'TIMEOUT');
    same(await idsOf(storage, { errorCode: 'TIMEOUT' }, 2), ['e', 'd'], 'the first two');
    same(await idsOf(storage, { errorCode: 'TIMEOUT', since: T0 + 2, until: T0 + 5 }), ['d'], 'with instants');
    same(await idsOf(storage, { errorCode: 'TIMEOUT', status: 'failed' }), ['d', 'a'], 'with a status');
    same(
      await idsOf(storage, { errorCode: 'TIMEOUT', ensemble: execution(1).ensemble }),
      ['e', 'd', 'a'],
      'an ensemble',
    );
    same(await idsOf(storage, { errorCode: 'TIMEOUT', search: 'a' }), ['a'], 'with a search');
    same(await idsOf(storage, { errorCode: 'OTHER' }), ['c'], 'OTHER');
    for (const errorCode of ['TIM', 'TIMEOUTS', '%', '']) same(await idsOf(storage, { errorCode }), [], errorCode);
    same(await idsOf(storage, { errorCode: 'TIMEOUT', status: 'completed' }), [], 'of those that completed');
  });

  it('list: `order: oldest` is the reverse of every listing, in pages and with every filter', async (storage) => {
    await register(storage);
    for (let number = 0; number < 24; number++) {
      const about = { id: `${(number * 7) % 24}:x`, createdAt: T0 + Math.floor(number / 2) };
      const tags = number % 3 === 0 ? ['t', 'u'] : ['u'];
      const accepted = execution(number, { ...about, ensemble: number % 2 === 0 ? 'a' : 'b', tags });
      if (number % 4 === 0) await enqueue(storage, accepted);
      else await accept(storage, accepted);
      const error = { code: 'X', message: '' };
      const ended = number % 4 === 1 ? end() : number % 4 === 2 ? end({ status: 'failed', error }) : undefined;
      if (ended) await commitOne(storage, { executionId: about.id, epoch: 1, steps: [], end: ended });
    }
    const filters: readonly Filter[] = [
      ...([{}, { ensemble: 'a' }, { tag: 't' }, { search: '1' }, { errorCode: 'X' }] as const),
      ...(['queued', 'running', 'failed', 'completed'] as const).flatMap((status) => [
        { status },
        { status, ensemble: 'a' },
      ]),
      ...[{ since: T0 + 3 }, { until: T0 + 9 }, { since: T0 + 3, until: T0 + 9, tag: 'u' }],
    ];
    for (const filter of filters) {
      const expected = (await idsOf(storage, filter)).reverse();
      const seen: string[] = [];
      for (let before: ExecutionQuery['before']; ; ) {
        const page = await storage.executions.list({ ...filter, order: 'oldest', limit: 3, ...(before && { before }) });
        if (page.length === 0) break;
        seen.push(...page.map(({ id }) => id));
        before = page.at(-1);
      }
      same(seen, expected, JSON.stringify(filter));
    }
  });

  it('list, countOpen: `unresolved` is what failed or timed out and was no dry run, until an execution has the key of its retry', async (storage) => {
    await register(storage);
    await accept(storage, execution(6, { trigger: { type: 'call', dryRun: {} } }));
    await commitOne(storage, entry(6, { end: end({ status: 'failed', error: { code: 'X', message: '' } }) }));
    const dry = await storage.executions.get(executionId(6));
    same([dry?.status, dry?.dryRun, dry?.retriedBy], ['failed', true, undefined], 'the record of a dry run');
    const statuses = ['failed', 'timed_out', 'cancelled', 'completed', 'failed', 'failed'] as const;
    for (const [number, status] of statuses.entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { end: end({ status, error: { code: 'X', message: '' } }) }));
    }
    const openIds = async (filter: Filter = {}) => {
      const ids = await idsOf(storage, { unresolved: true, ...filter });
      return ids.map((id) => [0, 1, 2, 3, 4, 5, 10, 14].find((number) => executionId(number) === id));
    };
    const count = async (limit = 10) => (await storage.executions.countOpen(limit)).unresolved;
    same(await openIds(), [5, 4, 1, 0], 'before a retry');
    same(await openIds({ status: 'timed_out' }), [1], 'with a status');
    same(await openIds({ errorCode: 'X', since: T0 + 4, ensemble: execution(1).ensemble }), [5, 4], 'with others');
    same(await openIds({ status: 'cancelled' }), [], 'of those that were cancelled');
    same(await count(), { count: 4, oldestAt: T0 }, 'count');
    same(await count(2), { count: 2, oldestAt: T0 }, 'count to a limit');
    const retryOf = (number: number) => ({
      retryOf: executionId(number),
      idempotencyKey: retryKeyOf(executionId(number)),
    });
    await accept(storage, execution(10, retryOf(0)));
    await enqueue(storage, execution(14, { ...retryOf(4), tags: ['retry'] }));
    await commitOne(storage, entry(10, { end: end({ status: 'failed' }) }));
    same(await commitOne(storage, starting(execution(15, retryOf(0)))), 'exists', 'a second retry');
    same(await openIds(), [10, 5, 1], 'after two retries, of which one failed');
    same(await count(), { count: 3, oldestAt: T0 + 1 }, 'count after retries');
    await storage.executions.delete([executionId(10)]);
    same(await openIds(), [5, 1, 0], 'after a retry was deleted');
    await accept(storage, execution(10, retryOf(0)));
    await commitOne(storage, entry(10, { end: end() }));
    await storage.executions.delete([executionId(0), executionId(10)]);
    same(await openIds(), [5, 1], 'after both were deleted');
    await storage.executions.purge({ worker: WORKER, before: T0 + 1e12, limit: 10 });
    same(await count(), { count: 0 }, 'in an empty store');
  });

  it('list: combined filters select what matches all of them', async (storage) => {
    await register(storage);
    const all: { id: string; ensemble: string; tag: string; done: boolean; parent: boolean }[] = [];
    for (let number = 0; number < 48; number++) {
      const one = {
        id: `${(number * 37) % 100}:${number}`,
        ensemble: number % 2 === 0 ? 'a' : 'b',
        tag: `t${number % 3}`,
        done: number % 4 < 2,
        parent: number % 8 === 3,
      };
      all.unshift(one);
      const trigger = one.parent
        ? ({ type: 'ensemble', parentId: 'p', rootId: 'p', depth: 1, key: 'flow[0]' } as const)
        : ({ type: 'call' } as const);
      const accepted = execution(number, { id: one.id, ensemble: one.ensemble, tags: [one.tag, 'all'], trigger });
      if (!one.done && number % 3 === 0) await enqueue(storage, accepted);
      else await accept(storage, accepted);
      if (one.done) await commitOne(storage, { executionId: one.id, epoch: 1, steps: [], end: end() });
    }
    const check = async (filter: Filter, matches: (one: (typeof all)[0], number: number) => boolean) => {
      const expected = all.filter((one, at) => matches(one, 47 - at)).map(({ id }) => id);
      same(await idsOf(storage, filter), expected, JSON.stringify(filter));
    };
    const done = { status: 'completed' } as const;
    await check({ ensemble: 'a', tag: 't1' }, ({ ensemble, tag }) => ensemble === 'a' && tag === 't1');
    await check({ ...done, tag: 't1' }, (one) => one.done && one.tag === 't1');
    await check({ ...done, ensemble: 'b', tag: 't1' }, (one) => one.done && one.ensemble === 'b' && one.tag === 't1');
    await check({ status: 'running', tag: 't1' }, (one) => !one.done && one.tag === 't1');
    await check(
      { status: 'queued', tag: 't0', ensemble: 'a' },
      (one) => !one.done && one.tag === 't0' && one.ensemble === 'a',
    );
    await check({ parentId: 'p', tag: 't0' }, (one) => one.parent && one.tag === 't0');
    await check({ parentId: 'p', ...done }, (one) => one.parent && one.done);
    await check(
      { parentId: 'p', ensemble: 'b', status: 'running', tag: 't1' },
      (one) => one.parent && one.tag === 't1',
    );
    await check({ search: 't1', ensemble: 'a' }, ({ ensemble, tag }) => ensemble === 'a' && tag === 't1');
    await check(
      { search: 't', status: 'running', ensemble: 'a' },
      (one, number) => !one.done && one.ensemble === 'a' && number % 3 !== 0,
    );
    await check({ search: '3', parentId: 'p' }, (one) => one.parent && one.id.startsWith('3'));
    await check(
      { ensemble: 'a', since: T0 + 10, until: T0 + 20 },
      (one, number) => one.ensemble === 'a' && number >= 10 && number < 20,
    );
    await check({ tag: 'all', ensemble: 'a', until: T0 + 20 }, (one, number) => one.ensemble === 'a' && number < 20);
  });

  it('list: refuses a `search` with too many matches', async (storage) => {
    await register(storage);
    const count = MAX_MATCHES + 1;
    for (let first = 0; first < count; first += 500) {
      const all = Array.from({ length: Math.min(500, count - first) }, (_, i) => first + i);
      await storage.commit(
        WORKER,
        all.map((number) => starting(execution(number, number < 2 ? { tags: ['few'] } : {}))),
      );
    }
    await refuses('INVALID_REQUEST', () => storage.executions.list({ search: 'exec_', limit: 10 }));
    same(await idsOf(storage, { search: 'fe' }), [1, 0].map(executionId), 'a search with few matches');
  });

  it('purge: deletes keys and tags, so that an id and a key can be used again', async (storage) => {
    const id = 'zz-order';
    const about = { id, idempotencyKey: 'key', tags: ['vip', '"漢"'] };
    await accept(storage, execution(1, about));
    await accept(storage, execution(2, { id: 'aa-order', tags: ['vip'] }));
    await commitOne(storage, { executionId: id, epoch: 1, steps: [], end: end({ finishedAt: T0 }) });
    same(await storage.executions.purge({ worker: WORKER, before: T0 + 10, limit: 10 }), { deleted: 1 }, 'purge');
    same(await storage.executions.findByKey('key'), undefined, 'the key');
    same(await idsOf(storage, { tag: 'vip' }), ['aa-order'], 'executions with the tag');
    same(await idsOf(storage, { search: '"' }), [], 'executions with the beginning of a tag');
    await accept(storage, execution(3, { ...about, seed: 'a'.repeat(32), tags: ['new'] }));
    same(await storage.executions.findByKey('key'), id, 'the key of the new execution');
    same(await idsOf(storage, { tag: 'vip' }), ['aa-order'], 'executions with the tag after the id was used again');
  });

  it('purge: passes own ids in the order of their creation, in batches', async (storage) => {
    await register(storage);
    const ids = Array.from({ length: 20 }, (_, number) => `${String.fromCharCode(122 - number)}-${number}`);
    for (const [number, id] of ids.entries()) {
      await accept(storage, execution(number, { id }));
      if (number % 2 === 0)
        await commitOne(storage, { executionId: id, epoch: 1, steps: [], end: end({ finishedAt: T0 + number }) });
    }
    let deleted = 0;
    for (let after: string | undefined; ; ) {
      const query = { worker: WORKER, before: T0 + 100, limit: 3, ...(after !== undefined && { after }) };
      const answer = await storage.executions.purge(query);
      deleted += answer?.deleted ?? 0;
      after = answer?.next;
      if (after === undefined) break;
    }
    same(deleted, 10, 'deleted');
    same(await idsOf(storage, {}), ids.filter((_, number) => number % 2 === 1).reverse(), 'what is left');
  });
}
