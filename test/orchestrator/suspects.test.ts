/** Executions whose process dies: one that it dies of is ended soon, and none that was only at work beside it. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { Process } from '../../src/adapters/testing/engine-suite/process.ts';
import { code, echo, ensemble } from '../../src/adapters/testing/engine-suite/steps.ts';
import { inWorld, type SuiteStore, type World } from '../../src/adapters/testing/engine-suite/world.ts';
import { createOrchestrator } from '../../src/orchestrator.ts';
import { newFile } from '../storage/sqlite-files.ts';

type InWorld = <T>(body: (world: World) => Promise<T>) => Promise<T>;

const inWorldOf =
  (create: () => SuiteStore | Promise<SuiteStore>): InWorld =>
  (body) =>
    inWorld({ create, createSubject: createOrchestrator as never, engine: embeddedEngine }, body);

const world = inWorldOf(() => {
  const storage = memoryStorage({ shared: true });
  // Handles on one storage: none of them closes it.
  return { connect: () => ({ ...storage, close() {} }) };
});
const PLACES: readonly (readonly [name: string, inside: InWorld])[] = [
  ['a shared storage', world],
  [
    'a file',
    inWorldOf(async () => {
      const path = newFile();
      // The file stays open while its processes come and go.
      const open = sqliteStorage({ path });
      await open.getDefinition('-');
      return { connect: () => sqliteStorage({ path, synchronous: 'normal' }), end: () => open.close() };
    }),
  ],
];

const slow = (agent: string, ms: unknown) => code(agent, 'slow', { input: { ms, i: '${input.i}' } });
const HEALTHY = ensemble([slow('a', '${input.ms}'), slow('b', '${input.ms}'), echo('c', 3)], { c: '${c.output}' });
const DEADLY = { name: 'deadly', flow: [code('x', 'deadly')] };

/** Begins another process whenever one has died of the script `deadly`, until all has ended. @returns how many died */
async function liveOn(inside: World, mostDeaths: number, concurrency = 1000): Promise<number> {
  let current: Process | undefined;
  for (let deaths = 0; ; deaths++) {
    if (deaths > mostDeaths) throw new Error(`${deaths} processes died`);
    const died = await inside.open({
      ensembles: [HEALTHY, DEADLY],
      scripts: { deadly: () => current?.kill() },
      engine: { concurrency },
    });
    current = died;
    await died.subject.ready();
    const isOver = async () => !died.life.alive || (await hasEnded(inside));
    await inside.until('a death, or the end of all', isOver, 3_600_000);
    if (!died.life.alive) continue;
    // A file takes one process alone.
    died.kill();
    await inside.settle();
    return deaths;
  }
}

async function hasEnded({ reader }: World): Promise<boolean> {
  for (const status of ['queued', 'running', 'waiting'] as const)
    if ((await reader.listExecutions({ status, limit: 1 })).length > 0) return false;
  return true;
}

async function endsOf({ reader }: World): Promise<Readonly<Record<string, readonly string[]>>> {
  const ends: Record<string, string[]> = {};
  let before: string | undefined;
  do {
    const page = await reader.listExecutions({ limit: 250, ...(before !== undefined && { before }) });
    for (const { ensemble: name, status } of page) ends[name] = [...new Set([...(ends[name] ?? []), status])];
    before = page.at(-1)?.id;
  } while (before !== undefined);
  return ends;
}

async function queue(inside: World, name: string, inputs: readonly object[]): Promise<string[]> {
  const guest = await inside.open({
    ensembles: [HEALTHY, DEADLY],
    scripts: { deadly: () => 0 },
    engine: { concurrency: 0 },
  });
  const ids: string[] = [];
  for (const input of inputs) ids.push((await guest.subject.start(name, input)).id);
  await guest.subject.close();
  return ids;
}

describe.each(PLACES)('an execution of %s that its process dies of', (_name, inPlace) => {
  it('is ended after three deaths, with what to do; a retry is possible', () =>
    inPlace(async (inside) => {
      const [id = ''] = await queue(inside, 'deadly', [{}]);
      expect(await liveOn(inside, 10)).toBe(3);
      const record = await inside.reader.getExecution(id);
      expect(record).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
      expect(record?.error?.message).toMatch(/died each time soon after it was resumed.*A retry runs it anew/);
      const process = await inside.open({ ensembles: [HEALTHY, DEADLY], scripts: { deadly: () => 'well' } });
      const again = await process.subject.executions.retry(id);
      await inside.ended(again.id);
      expect((await inside.reader.getExecution(again.id))?.status).toBe('completed');
    }));

  it('is found among others, whose steps take longer than any of the processes lives', () =>
    inPlace(async (inside) => {
      const others = Array.from({ length: 40 }, (_, i) => ({ i, ms: 20_000 }));
      await queue(inside, 'e', others.slice(0, 25));
      await queue(inside, 'deadly', [{}]);
      await queue(inside, 'e', others.slice(25));
      // Once with all the others, in groups of a quarter of them each, and three times alone.
      expect(await liveOn(inside, 20)).toBeLessThanOrEqual(1 + 3 + 3);
      expect(await endsOf(inside)).toEqual({ deadly: ['failed'], e: ['completed'] });
    }));

  it('is ended too where others are at work all the time', () =>
    inPlace(async (inside) => {
      await queue(inside, 'deadly', [{}]);
      let ticks = 0;
      const call = (process: Process) => {
        ticks += 1;
        process.subject.execute('e', { i: ticks, ms: 2000 }).catch(() => undefined);
      };
      let current: Process | undefined;
      let deaths = 0;
      const isEnded = async () =>
        (await inside.reader.listExecutions({ ensemble: 'deadly', limit: 1 }))[0]?.status === 'failed';
      while (!(await isEnded()) && deaths < 50) {
        const process = await inside.open({ ensembles: [HEALTHY, DEADLY], scripts: { deadly: () => current?.kill() } });
        current = process;
        await process.subject.ready();
        while (process.life.alive && !(await isEnded())) {
          call(process);
          await inside.advance(1000);
        }
        deaths += 1;
      }
      expect(deaths).toBeLessThan(30);
      await inside.until('all others', () => hasEnded(inside));
      expect((await endsOf(inside)).e).toEqual(['completed']);
    }));
});

describe('executions whose process dies of something else', () => {
  it(
    'are not ended: one kill a second over eight processes, with queued work',
    () =>
      world(async (inside) => {
        await queue(
          inside,
          'e',
          Array.from({ length: 1000 }, (_, i) => ({ i, ms: 200 + ((i * 37) % 1300) })),
        );
        const processes: Process[] = [];
        const open = async () => {
          const process = await inside.open({ ensembles: [HEALTHY], engine: { concurrency: 10 } });
          await process.subject.ready();
          return process;
        };
        for (let i = 0; i < 8; i++) processes.push(await open());
        let seed = 7;
        const draw = (below: number) => {
          seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
          return Math.floor((seed / 2_147_483_648) * below);
        };
        let kills = 0;
        while (!(await hasEnded(inside)) && kills < 600) {
          await inside.advance(1000);
          const at = draw(processes.length);
          processes[at]?.kill();
          kills += 1;
          processes[at] = await open();
        }
        expect(kills).toBeGreaterThan(20);
        expect(await endsOf(inside)).toEqual({ e: ['completed'] });
      }),
    120_000,
  );

  it('hold nothing else up for longer than a minute', () =>
    world(async (inside) => {
      await queue(inside, 'e', [{ i: 0, ms: 600_000 }]);
      const first = await inside.open({ ensembles: [HEALTHY] });
      await first.subject.ready();
      await inside.advance(1000);
      first.kill();
      await queue(inside, 'e', [{ i: 1, ms: 10 }]);
      const second = await inside.open({ ensembles: [HEALTHY] });
      await second.subject.ready();
      await inside.advance(70_000);
      const ends = (await inside.reader.listExecutions({ limit: 2 })).map(({ status }) => status);
      expect(ends).toEqual(['completed', 'running']);
    }));
});
