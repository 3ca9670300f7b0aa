/** The entries for every runtime: no module of Node.js, no code from strings, no effect at import, and a small size. */

import { describe, expect, it } from 'vitest';
import { PORTABLE_ENTRIES } from '../portable-entries.ts';
import { builtFiles, manifest, runNode } from './built-package.ts';
import { bundle, bundleProgram, codeFromStrings, gzipped } from './worker-bundle.ts';

const KB = 1000;
/** Limits in gzipped bytes, minified. docs/decisions/0014 and 0095 list what they consist of. A further kilobyte needs a reason. */
const MAX_WITH_DEPENDENCIES = 396 * KB;
const MAX_OWN = 327 * KB;
const MAX_AI = 8 * KB;
const MAX_WORKER = 397 * KB;

/** The prelude of a program: it records every call that a Worker refuses outside of a request. */
const SPIES = `
  const calls = [];
  const spy = (holder, name) => {
    const original = holder[name];
    holder[name] = function (...args) { calls.push(name); return original.apply(this, args); };
  };
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch']) spy(globalThis, name);
  for (const name of ['getRandomValues', 'randomUUID']) spy(Object.getPrototypeOf(crypto), name);
  spy(Math, 'random');
  for (const name of ['digest', 'importKey', 'generateKey', 'sign']) spy(Object.getPrototypeOf(crypto.subtle), name);
  const resources = () => process.getActiveResourcesInfo().length;
`;

const ENSEMBLE = JSON.stringify({
  name: 'e',
  inputs: { n: { type: 'number' } },
  flow: [{ agent: 'a', operation: 'code', config: { script: 'twice', n: '${input.n + random() * 0}' } }],
  outputs: { twice: '${a.output}', id: '${uuid()}' },
});
const CREATE = `createOrchestrator({ ensembles: [${ENSEMBLE}], scripts: { twice: ({ config }) => config.n * 2 } })`;

describe.each(PORTABLE_ENTRIES)('the entry %s', (entry) => {
  it('bundles for a runtime without `node:` modules, with required dependencies only', async () => {
    const { metafile } = await bundle(entry, 'bundle');
    const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path));
    expect(imports).toEqual([]);
    const { metafile: own } = await bundle(entry, 'external');
    const packages = Object.values(own.outputs).flatMap((output) => output.imports.map(({ path }) => path));
    const allowed = Object.keys(manifest.dependencies);
    expect(packages.filter((path) => !allowed.some((name) => path === name || path.startsWith(`${name}/`)))).toEqual(
      [],
    );
  });

  it('has no effect when it is imported', async () => {
    const program = `${SPIES}
      await import('ensemble-orchestrator${entry === 'index' ? '' : `/${entry}`}');
      console.log(JSON.stringify(calls));`;
    expect(await runNode(program)).toEqual([]);
  });
});

describe('the entry ai', () => {
  it(`is at most ${MAX_AI / KB} KB gzipped: no provider and no package of the AI SDK is in it`, async () => {
    expect(gzipped(await bundle('ai', 'bundle'))).toBeLessThanOrEqual(MAX_AI);
  });
});

describe('a Worker with three operations on a Durable Object', () => {
  it(`is at most ${MAX_WORKER / KB} KB gzipped with its API, and has no code of the other operations`, async () => {
    const made = await bundleProgram(`
      import { createHandler } from './index.js';
      import { api, code, createOrchestrator, durableObjectStorage, storage, toDurableObject } from './workers.js';
      export const Workflows = toDurableObject((ctx) => {
        const options = { operations: [code(), api(), storage()], storage: durableObjectStorage(ctx), ensembles: [] };
        const orchestrator = createOrchestrator(options);
        return { orchestrator, handler: createHandler(orchestrator) };
      });`);
    expect(gzipped(made)).toBeLessThanOrEqual(MAX_WORKER);
    const has = (word: string) => made.outputFiles[0]?.text.includes(word);
    // A word of `storage`, one of `think`, one of `email`.
    expect([has('name:"storage"'), has('tool_calls'), has('thirdparty')]).toEqual([true, false, false]);
  });
});

describe('the main entry', () => {
  it(`is at most ${MAX_WITH_DEPENDENCIES / KB} KB gzipped in a Worker's bundle, dependencies included`, async () => {
    expect(gzipped(await bundle('index', 'bundle'))).toBeLessThanOrEqual(MAX_WITH_DEPENDENCIES);
  });

  it(`is at most ${MAX_OWN / KB} KB gzipped without its dependencies`, async () => {
    expect(gzipped(await bundle('index', 'external'))).toBeLessThanOrEqual(MAX_OWN);
  });

  it('does no I/O, sets no timer and draws no random number when an orchestrator is created', async () => {
    const program = `${SPIES}
      const { createOrchestrator } = await import('ensemble-orchestrator');
      const before = resources();
      const orchestrator = ${CREATE};
      const created = [...calls];
      const opened = resources() - before;
      const { output } = await orchestrator.execute('e', { n: 21 });
      console.log(JSON.stringify({ created, opened, twice: output.twice, drew: calls.includes('getRandomValues') }));`;
    expect(await runNode(program)).toEqual({ created: [], opened: 0, twice: 42, drew: true });
  });

  it('runs where code cannot be made from strings', async () => {
    const program = `
      import { createOrchestrator } from 'ensemble-orchestrator';
      let refused = false;
      try { new Function('return 1')(); } catch { refused = true; }
      const { status, output } = await ${CREATE}.execute('e', { n: 4 });
      console.log(JSON.stringify({ refused, status, twice: output.twice }));`;
    const flags = ['--disallow-code-generation-from-strings', '--input-type=module'];
    expect(await runNode(program, flags)).toEqual({ refused: true, status: 'completed', twice: 8 });
  });
});

describe('code from strings', () => {
  it('no file of the build has any', () => {
    expect(builtFiles().flatMap(({ name, text }) => codeFromStrings(name, text))).toEqual([]);
  });

  it('the check finds each form', () => {
    const text =
      "eval('1'); new Function('a', 'b'); globalThis.eval('2'); Function('3'); setTimeout('4', 1); setTimeout(() => {}, 1);";
    expect(codeFromStrings('x.js', text)).toHaveLength(5);
  });
});
