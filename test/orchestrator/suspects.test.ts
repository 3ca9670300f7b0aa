/** Executions whose process dies: one that causes the death is ended soon. One that only ran at the same time is not. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { code, echo, ensemble } from '../../src/conformance/engine-suite/steps.ts';
import type { Process } from '../../src/conformance/engine-suite/world/process.ts';
import { openStorageWorld, type SuiteStore } from '../../src/conformance/engine-suite/world/storage-world.ts';
import { inWorld, type World } from '../../src/conformance/engine-suite/world/world.ts';
import type { ExecutionPosition } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { newFile } from '../storage/sqlite-files.ts';

type InWorld = <T>(body: (world: World) => Promise<T>) => Promise<T>;

const inWorldOf =
  (create: () => SuiteStore | Promise<SuiteStore>): InWorld =>
  (body) =>
    inWorld(
      {
        createSubject: createOrchestrator as never,
        openWorld: () => openStorageWorld({ create, engine: embeddedEngine }),
      },
      body,
    );

const world = inWorldOf(() => {
  const storage = memoryStorage({ shared: true });
  // All processes use one storage, and none of them closes it.
  return { connect: () => ({ ...storage, close() {} }) };
});
const PLACES: readonly (readonly [name: string, inside: InWorld])[] = [
  ['a shared storage', world],
  [
    'a file',
    inWorldOf(async () => {
      const path = newFile();
      // The file stays open while processes start and end.
      const open = sqliteStorage({ path });
      await open.definitions.get('-');
      return { connect: () => sqliteStorage({ path, synchronous: 'normal' }), end: () => open.close() };
    }),
  ],
];

const slow = (agent: string, ms: unknown) => code(agent, 'slow', { input: { ms, i: '${input.i}' } });
const HEALTHY = ensemble([slow('a', '${input.ms}'), slow('b', '${input.ms}'), echo('c', 3)], { c: '${c.output}' });
const DEADLY = { name: 'deadly', flow: [code('x', 'deadly')] };

/** Starts another process each time the script `deadly` has killed one, until all executions have ended. @returns how many died */
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
    const isOver = async () => !died.control.alive || (await hasEnded(inside));
    await inside.until('a death, or the end of all', isOver, 3_600_000);
    if (!died.control.alive) continue;
    // A file allows one process only.
    died.kill();
    await inside.settle();
    return deaths;
  }
}

async function hasEnded({ reader }: World): Promise<boolean> {
  for (const status of ['queued', 'running', 'waiting'] as const)
    if ((await reader.executions.list({ status, limit: 1 })).length > 0) return false;
  return true;
}

async function endsOf({ reader }: World): Promise<Readonly<Record<string, readonly string[]>>> {
  const ends: Record<string, string[]> = {};
  let before: ExecutionPosition | undefined;
  do {
    const page = await reader.executions.list({ limit: 250, ...(before !== undefined && { before }) });
    for (const { ensemble: name, status } of page) ends[name] = [...new Set([...(ends[name] ?? []), status])];
    before = page.at(-1);
  } while (before !== undefined);
  return ends;
}

async function queue(inside: World, name: string, inputs: readonly object[]): Promise<string[]> {
  const client = await inside.open({
    ensembles: [HEALTHY, DEADLY],
    scripts: { deadly: () => 0 },
    engine: { concurrency: 0 },
  });
  const ids: string[] = [];
  for (const input of inputs) ids.push((await client.subject.start(name, input)).id);
  await client.subject.close();
  return ids;
}

describe.each(PLACES)('an execution of %s that kills its process', (_name, inPlace) => {
  it('is ended after three deaths, with a remedy; a retry is possible', () =>
    inPlace(async (inside) => {
      const [id = ''] = await queue(inside, 'deadly', [{}]);
      expect(await liveOn(inside, 10)).toBe(3);
      const record = await inside.reader.executions.get(id);
      expect(record).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
      expect(record?.error?.message).toMatch(/died each time soon after it was resumed.*A retry runs it anew/);
      const process = await inside.open({ ensembles: [HEALTHY, DEADLY], scripts: { deadly: () => 'well' } });
      const again = await process.subject.executions.retry(id);
      await inside.ended(again.id);
      expect((await inside.reader.executions.get(again.id))?.status).toBe('completed');
    }));

  it('is found among others whose steps take longer than each process lives', () =>
    inPlace(async (inside) => {
      const others = Array.from({ length: 40 }, (_, i) => ({ i, ms: 20_000 }));
      await queue(inside, 'e', others.slice(0, 25));
      await queue(inside, 'deadly', [{}]);
      await queue(inside, 'e', others.slice(25));
      // Once with all others, then in groups of a quarter of them, and three times alone.
      expect(await liveOn(inside, 20)).toBeLessThanOrEqual(1 + 3 + 3);
      expect(await endsOf(inside)).toEqual({ deadly: ['failed'], e: ['completed'] });
    }));

  it('is ended even if others run all the time', () =>
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
        (await inside.reader.executions.list({ ensemble: 'deadly', limit: 1 }))[0]?.status === 'failed';
      while (!(await isEnded()) && deaths < 50) {
        const process = await inside.open({ ensembles: [HEALTHY, DEADLY], scripts: { deadly: () => current?.kill() } });
        current = process;
        await process.subject.ready();
        while (process.control.alive && !(await isEnded())) {
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

describe('executions whose process dies for another reason', () => {
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

  it('delay others for a minute at most', () =>
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
      const ends = (await inside.reader.executions.list({ limit: 2 })).map(({ status }) => status);
      expect(ends).toEqual(['completed', 'running']);
    }));
});
