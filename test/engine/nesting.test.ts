/** Each form of the flow nests in each other form. */

import { describe, expect, it } from 'vitest';
import type { Script } from '../../src/operations/code/script.ts';
import { boom, code, echo, ok, scene, turns, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
type Wrap = (inside: readonly Fields[], tag: string) => readonly Fields[];

/** Each form runs its content once. */
const FORMS: Readonly<Record<string, Wrap>> = {
  if: (inside) => [{ if: true, then: inside, else: [boom('wrong')] }],
  else: (inside) => [{ if: false, then: [], else: inside }],
  switch: (inside) => [{ switch: "${'x'}", cases: { x: inside } }],
  default: (inside) => [{ switch: "${'x'}", cases: { y: [] }, default: inside }],
  foreach: (inside) => [{ foreach: [1], steps: inside }],
  'foreach of several': (inside) => [
    { foreach: [1, 2], concurrency: 2, steps: [{ if: '${index == 1}', then: inside }] },
  ],
  while: (inside, tag) => {
    const tick = `tick-${tag}`;
    return [{ while: `\${(${tick}.output ?? 0) < 1}`, steps: [echo(tick, 1), ...inside] }];
  },
  parallel: (inside, tag) => [
    {
      parallel: [
        { if: true, then: inside },
        { sleep: 10, name: `nap-${tag}` },
      ],
    },
  ],
  'parallel any': (inside) => [{ parallel: [{ if: true, then: inside }], waitFor: 'any' }],
  'parallel first': (inside) => [{ parallel: [{ if: true, then: inside }, { sleep: '1d' }], waitFor: 'first' }],
  try: (inside) => [{ try: inside, finally: [] }],
  catch: (inside, tag) => [{ try: [boom(`boom-${tag}`)], catch: inside }],
  finally: (inside, tag) => [{ try: [ok(`ok-${tag}`)], finally: inside }],
};
const names = Object.keys(FORMS);
const pairs = names.flatMap((outer) => names.map((inner) => [outer, inner] as const));
const nest = (outer: string, inner: string, core: readonly Fields[]) =>
  (FORMS[outer] as Wrap)([...(FORMS[inner] as Wrap)(core, 'i'), ok('in')], 'o');
const obedient: Script = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

describe('each form nests in each other form', () => {
  it.each(pairs)('%s around %s: runs once, in order', async (outer, inner) => {
    const { run, ran, clock } = scene({
      flow: [ok('a'), ...nest(outer, inner, [ok('b'), { sleep: '2s' }, echo('c', '${a.output}')]), ok('z')],
      outputs: { a: '${a.output}' },
    });
    expect(await run()).toMatchObject({ status: 'completed', output: { a: 'a' } });
    expect(ran.filter((name) => !/^(tick|boom|ok)-/.test(name))).toEqual(['a', 'b', 'c', 'in', 'z']);
    expect(clock.nextIn).toBeUndefined();
  });

  it.each(pairs)(
    '%s around %s: a failure inside ends the run with its error, and `finally` runs',
    async (outer, inner) => {
      const flow = [...nest(outer, inner, [{ try: [boom('b'), ok('no')], finally: [ok('f')] }, ok('no2')]), ok('z')];
      const { run, ran, clock } = scene(flow);
      expect(await run()).toMatchObject({ status: 'failed', error: { agent: 'b' } });
      expect(ran.filter((name) => !/^(tick|boom|ok)-/.test(name))).toEqual(['b', 'f']);
      expect(clock.nextIn).toBeUndefined();
    },
  );

  it.each(pairs)(
    '%s around %s: a `catch` around both catches a failure, and a cancellation runs `finally` inside',
    async (outer, inner) => {
      const caught = scene([{ try: nest(outer, inner, [boom('b')]), catch: [echo('c', '${error.agent}')] }, ok('z')]);
      expect((await caught.run()).status).toBe('completed');
      expect(caught.ran.slice(-3)).toEqual(['b', 'c', 'z']);

      const flow = [
        ...nest(outer, inner, [{ try: [code('b', 'obedient')], finally: [ok('f')] }]),
        ok('z', when('true')),
      ];
      const { start, ran, clock } = scene(flow, { scripts: { obedient } });
      const handle = await start();
      await turns(8);
      expect(ran).toContain('b');
      handle.cancel();
      // One `finally` in another: each has its own 25 s.
      await clock.advance(50_000);
      expect((await handle.result()).status).toBe('cancelled');
      // A step in a `finally` is not stopped at once: it has 25 s, and is stopped then.
      expect(ran.filter((name) => !/^(tick|boom|ok)-/.test(name))).toEqual(['b', 'f']);
      await clock.advance(100_000);
      expect(clock.nextIn).toBeUndefined();
    },
  );
});
