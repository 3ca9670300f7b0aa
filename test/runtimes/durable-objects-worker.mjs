/**
 * The published suites in Durable Objects, as a Worker: `/cases` lists the cases, and `/run?from=0&to=10` runs some of them, each in
 * a new object.
 */

import { DurableObject } from 'cloudflare:workers';
import { isOrchestratorError, OrchestratorError } from 'ensemble-orchestrator';
import { createParts } from 'ensemble-orchestrator/adapter';
import { dataSuite, engineSuite, storageSuite, tokenSuite } from 'ensemble-orchestrator/conformance';
import { durableObjectStorage } from 'ensemble-orchestrator/workers';
import { limitCases } from './durable-objects-limits.mjs';

/** Cases whose values are larger than a row of a Durable Object: the storage must refuse them, and not with another error. */
const TOO_LARGE = [
  'values: come back unchanged as input, step output, output and state: a text of a million characters',
];

/** A store that runs cases, or is the store of a case that runs outside of it. */
export class Store extends DurableObject {
  #storage;

  async run(number) {
    return outcomeOf(casesIn(this.ctx)[number]);
  }

  /** @param path - such as `commit` or `executions.get` @returns the answer, or the code and the message of an error */
  async call(path, args) {
    this.#storage ??= durableObjectStorage(this.ctx);
    const [part, method] = path.split('.');
    try {
      return { answer: method ? this.#storage[part][method](...args) : this.#storage[part](...args) };
    } catch (error) {
      if (!isOrchestratorError(error)) throw error;
      // An error loses its code on its way to the Worker.
      const { code, message } = error;
      return { code, message };
    }
  }

  async abort() {
    this.ctx.abort('the object starts again without its memory');
  }
}

/** A class without SQLite. */
export class WithoutSqlite extends DurableObject {
  async open() {
    try {
      durableObjectStorage(this.ctx).executions.countQueued(1);
      return 'it is open';
    } catch (error) {
      return `${error.code}: ${error.message}`;
    }
  }
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const all = [...casesIn(), ...casesOutside(env)];
    if (pathname === '/cases') return Response.json(all.map(({ suite, title }) => ({ suite, title })));
    const outcomes = [];
    for (let number = Number(searchParams.get('from')); number < Number(searchParams.get('to')); number += 1) {
      const { isOutside } = all[number];
      const run = () => (isOutside ? outcomeOf(all[number]) : newStore(env).stub().run(number));
      outcomes.push(await run().catch((error) => `it broke the object: ${error}`));
    }
    return Response.json(outcomes);
  },
};

/** The cases that run inside of an object. @param ctx - absent where only their titles are needed */
function casesIn(ctx) {
  const { cases, suite } = collection();
  const create = () => durableObjectStorage(ctx);
  const name = 'durableObjectStorage';
  storageSuite({ name, create, workers: 'many', test: suite('storageSuite') });
  dataSuite({ name, create, test: suite('dataSuite') });
  tokenSuite({ name, create, test: suite('tokenSuite') });
  engineSuite({
    name,
    async create() {
      await ctx.storage.deleteAll();
      const { capabilities } = create();
      // The processes that this suite simulates share the object.
      // Their clock is not the clock of the platform's alarms.
      return { connect: () => ({ ...create(), wakeAt: undefined, capabilities: { ...capabilities, shared: true } }) };
    },
    test: suite('engineSuite'),
  });
  limitCases(ctx, suite('limits').it);
  return cases;
}

/** The cases that need a store which starts again: they run in the Worker. */
function casesOutside(env) {
  const { cases, suite } = collection();
  let store;
  const create = () => {
    store = newStore(env);
    return store.storage();
  };
  const reopen = async () => {
    await store
      .stub()
      .abort()
      .then(
        () => Promise.reject(new Error('the object was not aborted')),
        () => undefined,
      );
    return store.storage();
  };
  storageSuite({ name: '', create, reopen, workers: 'many', handles: 'one', test: suite('storageSuite') });
  const inside = new Set(casesIn().map(({ title }) => title));
  const added = cases.filter(({ title }) => !inside.has(title));
  suite('limits').it('a class without SQLite: NOT_CONFIGURED names the setting', async () => {
    const namespace = env.WITHOUT_SQLITE;
    const found = await namespace.get(namespace.newUniqueId()).open();
    if (!/^NOT_CONFIGURED: .*new_sqlite_classes/.test(found)) throw new Error(found);
  });
  return [...added, cases.at(-1)].map((one) => ({ ...one, isOutside: true }));
}

/** A new object. An object that was aborted needs a new stub. */
function newStore({ STORE }) {
  const id = STORE.newUniqueId();
  const stub = () => STORE.get(id);
  const storage = () => {
    const to = stub();
    let closed = false;
    const call = async (method, args) => {
      // The object of a closed handle may be aborted.
      if (closed) return undefined;
      closed = method === 'close';
      const { code, message, answer } = await to.call(method, args);
      if (code !== undefined) throw new OrchestratorError(code, message);
      return answer;
    };
    return {
      ...createParts(
        (part, method) =>
          (...args) =>
            call(`${part}.${method}`, args),
      ),
      commit: (...args) => call('commit', args),
      close: () => call('close', []),
    };
  };
  return { stub, storage };
}

/** A test runner that keeps the cases. */
function collection() {
  const cases = [];
  const suite = (name) => ({
    describe: (_title, body) => body(),
    it: (title, body) => cases.push({ suite: name, title, body }),
  });
  return { cases, suite };
}

/** @returns null for a case that passes, otherwise its error */
async function outcomeOf({ title, body }) {
  try {
    await body();
    return TOO_LARGE.includes(title) ? 'values of this size are not refused' : null;
  } catch (error) {
    if (TOO_LARGE.includes(title) && error.code === 'INVALID_OUTPUT') return null;
    return String(error?.stack ?? error);
  }
}
