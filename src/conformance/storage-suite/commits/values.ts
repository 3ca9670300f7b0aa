/** Storage suite: values of every kind, names and keys come back unchanged. */

import type { Json } from '../../../engine/base/json/json.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  frozen,
  retrying,
  type StorageCase,
  same,
  starting,
  step,
  T0,
} from '../context.ts';

const VALUES: readonly (readonly [string, Json])[] = [
  ['null', null],
  ['booleans', [true, false]],
  ['numbers', [0, 1, -1, 0.1, 1e21, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
  ['negative zero, which JSON writes as 0', [-0]],
  ['a text', 'text'],
  ['the empty text', ''],
  ['a text that looks like JSON', '{"a":1}'],
  ['a text that looks like a date', '2026-01-01T00:00:00Z'],
  [
    'texts of all Unicode planes',
    ['ä', '漢字', '👩‍👩‍👧', '\u0000', '\u2028', '\ufeff', 'e\u0301', '\\ " \' ` $1 %s ?'],
  ],
  ['half a surrogate pair', ['\ud83d', '\udc00']],
  ['a text of a million characters', 'ä漢x'.repeat(350_000)],
  ['an empty list and an empty object', [[], {}]],
  ['empty and odd keys', { '': 1, ' ': 2, '.': 3, 'a.b': 4, '[0]': 5, "'": 6, '"': 7, ключ: 8, '0': 9, '-1': 10 }],
  ['keys that objects inherit', { constructor: 1, toString: 2, hasOwnProperty: 3, valueOf: null, length: [] }],
  ['a list of lists', [[[[[[1], 2], 3], 4], 5], 6]],
  ['60 levels', Array.from({ length: 60 }).reduce<Json>((inner) => ({ inner }), 'bottom')],
  ['10,000 items', Array.from({ length: 10_000 }, (_, i) => ({ i, odd: i % 2 === 1 }))],
];

export function valueCases(it: StorageCase): void {
  for (const [what, value] of VALUES) {
    it(`values: come back unchanged as input, step output, output and state: ${what}`, async (storage) => {
      await accept(storage, execution(1, { input: value }));
      const state = change(0, { value });
      await commitOne(
        storage,
        entry(1, { steps: [step('flow[0]', { output: value })], state, end: end({ output: value }) }),
      );
      const record = await storage.executions.get(executionId(1));
      same(record?.input, value, 'input');
      same(record?.output, value, 'output');
      same(record?.agents[0]?.output, value, 'output of the step');
      same(
        (await storage.executions.listSteps(executionId(1), { limit: 1 }))[0]?.output,
        value,
        'output of the step record',
      );
      same((await storage.state.read('orders'))?.value, { value }, 'state');
    });
  }

  it('values: names, keys and messages come back unchanged', async (storage) => {
    const odd = 'a\'"\\;--%_\u2028漢👍';
    await accept(storage, execution(1, { ensemble: 'agent:constructor', version: odd }));
    const error = { code: 'AGENT_FAILED', message: odd };
    const record = step(odd, { name: odd, status: 'failed', output: null, error });
    await commitOne(storage, entry(1, { steps: [record], end: end({ status: 'failed', error }) }));
    const found = await storage.executions.get(executionId(1));
    same([found?.ensemble, found?.version, found?.error], ['agent:constructor', odd, error], 'record');
    same(found?.agents, [record], 'runs');
  });

  it('values: the details, the stack and the causes of an error come back unchanged', async (storage) => {
    const cause = { name: 'Error', code: 'ECONNREFUSED', message: 'refused', stack: 'Error: refused\n    at a' };
    const details = { status: 402, body: '\u0000 "ä" 漢', nested: { list: [null, 0.1, {}], none: null } };
    const error = {
      code: 'AGENT_FAILED',
      message: 'm',
      agent: 'a',
      details,
      stack: 'E\n    at b',
      cause: { ...cause, cause },
    };
    await accept(storage, execution(1));
    const retried = retrying('flow[0]', 1);
    const failed = step('flow[1]', { status: 'failed', output: null, error });
    await commitOne(storage, entry(1, { steps: [{ ...retried, error }, failed] }));
    const steps = await storage.executions.listSteps(executionId(1), { limit: 2 });
    same(
      steps.map((record) => record.error),
      [error, error],
      'errors of the steps',
    );
    same((await storage.executions.getStep(executionId(1), 'flow[1]'))?.error, error, 'error of the step');
    await commitOne(storage, entry(1, { end: end({ status: 'failed', output: null, error }) }));
    const record = await storage.executions.get(executionId(1));
    same([record?.error, record?.agents[1]?.error], [error, error], 'errors of the record');
    const [listed] = await storage.executions.list({ limit: 1 });
    same(listed?.error, error, 'error of the listing');
  });

  it('values: a store accepts frozen values', async (storage) => {
    await storage.definitions.put(
      frozen({ version: 'v', definition: { name: 'orders', flow: [] }, needs: ['operation:code'] }),
    );
    await accept(storage, frozen(execution(1)));
    const first = frozen(entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { list: [1] }) }));
    const second = frozen(
      entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(1, { list: [2] }), end: end() }),
    );
    same([await commitOne(storage, first), await commitOne(storage, second)], ['stored', 'stored'], 'answers');
    const queued = frozen(
      starting(execution(2), {
        steps: [step('flow[0]')],
        release: { status: 'queued', dueAt: T0 },
      }),
    );
    same(await commitOne(storage, queued), 'stored', 'answer to a queued start');
    const [claimed] = await claim(storage, frozen({ now: T0, limit: 5, excludeVersions: ['other'] }));
    const waits = frozen(
      entry(2, {
        release: { status: 'waiting', dueAt: T0 + 5 },
        epoch: claimed?.epoch ?? 0,
      }),
    );
    same(await commitOne(storage, waits), 'stored', 'answer to a release');
    same((await storage.executions.get(executionId(1)))?.agents.length, 1, 'runs');
  });
}
