/** The engine suite's cases of signals: to whom they are given, what they wake, and what a stop and a retry make of them. */

import { NEVER } from '../../../engine/model/stored-execution.ts';
import { same } from '../storage-suite/context.ts';
import { atEachCall, becomes, type Declare, given, labels, refused, watched } from './context.ts';
import { code, echo, ensemble } from './steps.ts';
import type { World } from './world.ts';

const ASKS = ensemble([echo('a', 1), { wait: 'approved', name: 'approval' }, echo('b', '${approval.output}')], {
  b: '${b.output}',
});

async function waits(world: World, number = 1): Promise<{ readonly id: string; readonly result: Promise<unknown> }> {
  const { subject } = await world.open({ ensembles: [ASKS] });
  const handle = await given(world, `start ${number}`, subject.start('e'));
  await becomes(world, handle.id, 'waiting', 5000);
  return { id: handle.id, result: handle.result() };
}

export function signalCases({ it, itWorlds }: Declare): void {
  it('signal: a run that waits takes up nothing, and goes on when it is told', async (world) => {
    const { subject } = await world.open({ ensembles: [ASKS] });
    const { id, ...handle } = await given(world, 'start', subject.start('e'));
    await becomes(world, id, 'waiting', 5000);
    const { nextDueAt } = await given(world, 'what is due', subject.runDue());
    same(nextDueAt, undefined, 'the instant at which something is due');
    same((await world.reader.survey('nobody', [])).nextDueAt, NEVER, 'its row');
    await world.advance(60_000);
    const told = await given(world, 'the signal', subject.executions.signal(id, 'approved', { by: 'Ada' }));
    same(told.id, id, 'the record that is answered');
    // On a store of many connections the run may be on its way before the record is read.
    same(['waiting', 'running', 'completed'].includes(told.status), true, `its status, ${told.status}, is one of them`);
    const { status, output } = await given(world, 'the end', handle.result(), 1000);
    same([status, output], ['completed', { b: { by: 'Ada' } }], 'its end');
    same(labels(world), ['a@1', 'b@1'], 'what ran');
  });

  it('signal: given to another process, also to one that runs nothing', async (world) => {
    const { id } = await waits(world);
    const guest = await world.open({ ensembles: [ASKS], engine: { concurrency: 0 } });
    await given(world, 'the signal', guest.subject.executions.signal(id, 'approved', 7));
    same((await world.ended(id, 2000)).output, { b: 7 }, 'its end');
  });

  it('signal: a run at work hears of it, too', async (world) => {
    const definition = ensemble(
      [
        {
          parallel: [code('a', 'slow', { input: { ms: 60_000 } }), { wait: 'go', name: 'go' }],
          waitFor: 'first',
          name: 'race',
        },
      ],
      { race: '${race.output}' },
    );
    const { subject } = await world.open({ ensembles: [definition] });
    const handle = await given(world, 'start', subject.start('e'));
    await world.advance(3000);
    same((await world.reader.getExecution(handle.id))?.status, 'running', 'status');
    await given(world, 'the signal', subject.executions.signal(handle.id, 'go', 'now'));
    const { output } = await given(world, 'the end', handle.result(), 2000);
    same(output, { race: { winner: 'go', output: 'now' } }, 'its end');
  });

  it('signal: one that is queued finds what came before it began', async (world) => {
    const { subject } = await world.open({ ensembles: [ASKS], engine: { concurrency: 0 } });
    const { id } = await given(world, 'start', subject.start('e'));
    await given(world, 'the signal', subject.executions.signal(id, 'approved', 'early'));
    same((await world.reader.getExecution(id))?.status, 'queued', 'status');
    const second = await world.open({ ensembles: [ASKS] });
    await second.subject.ready();
    same((await world.ended(id, 5000)).output, { b: 'early' }, 'its end');
  });

  it('signal: one that came behind the timeout while nobody ran it is left to the next wait', async (world) => {
    const definition = ensemble(
      [
        { wait: 'go', timeout: '5s', onTimeout: 'continue', name: 'first' },
        { wait: 'go', name: 'second' },
      ],
      { both: ['${first.output}', '${second.output}'] },
    );
    const first = await world.open({ ensembles: [definition] });
    const { id } = await given(world, 'start', first.subject.start('e'));
    await becomes(world, id, 'waiting', 2000);
    first.kill();
    await world.advance(10_000);
    const late = { id: 'sig_1', executionId: id, name: 'go', payload: 'late', createdAt: world.clock.now() };
    same(await world.reader.putSignal(late), 'stored', 'the signal');
    const second = await world.open({ ensembles: [definition] });
    await second.subject.ready();
    same((await world.ended(id, 5000)).output, { both: [null, 'late'] }, 'its end');
  });

  it('signal: refused where nobody can take it', async (world) => {
    const { id } = await waits(world);
    const { subject } = await world.open({ ensembles: [ASKS] });
    await refused(world, 'NOT_FOUND', subject.executions.signal('exec_0', 'approved'));
    await refused(world, 'INVALID_INPUT', subject.executions.signal(id, 'not a name'));
    await refused(world, 'INVALID_INPUT', subject.executions.signal(id, 'approved', { at: new Date(0) }));
    await given(world, 'cancel', subject.executions.cancel(id));
    same((await world.ended(id, 2000)).status, 'cancelled', 'its end');
    await refused(world, 'CONFLICT', subject.executions.signal(id, 'approved'));
    same(labels(world), ['a@1'], 'what ran');
  });

  it('retry: signals that were taken are handed on, those that were not are left behind', async (world) => {
    let isBroken = true;
    const script = () => {
      if (isBroken) throw new Error('broken');
      return 'mended';
    };
    const definition = ensemble(
      [
        { wait: 'go', name: 'first' },
        code('s', 'slow', { input: { ms: 2000 } }),
        code('a', 'breaks'),
        { wait: 'go', name: 'second' },
      ],
      {
        all: ['${first.output}', '${a.output}', '${second.output}'],
      },
    );
    const { subject } = await world.open({ ensembles: [definition], scripts: { breaks: script } });
    const { id } = await given(world, 'start', subject.start('e'));
    for (const payload of ['one', 'two']) {
      await given(world, payload, subject.executions.signal(id, 'go', payload));
    }
    same((await world.ended(id, 5000)).status, 'failed', 'the first run');
    isBroken = false;
    const again = await given(world, 'retry', subject.executions.retry(id));
    await becomes(world, again.id, 'waiting', 5000);
    await given(world, 'three', subject.executions.signal(again.id, 'go', 'three'));
    const { output } = await given(world, 'the end', again.result(), 2000);
    same(output, { all: ['one', 'mended', 'three'] }, 'its output');
  });

  // Whatever of the storage it crosses, it is neither lost nor taken twice.
  itWorlds('signal: at every call of the run that it is given to', async (inWorld) => {
    await atEachCall('a signal', (at, when) =>
      inWorld(async (world) => {
        let isStruck = false;
        const tell = async () => {
          isStruck = true;
          const [found] = await world.reader.listExecutions({ limit: 1 });
          if (!found) return;
          const about = { executionId: found.id, name: 'approved', createdAt: world.clock.now() };
          await world.reader.putSignal({ ...about, id: 'sig_1', payload: 'crossed' });
        };
        let calls = 0;
        const { subject } = await world.open({
          ensembles: [ASKS],
          tamper: (storage) =>
            new Proxy(storage, {
              get(target, key) {
                const value: unknown = Reflect.get(target, key);
                if (key !== 'commit' && key !== 'listSignals' && key !== 'claim' && key !== 'survey') return value;
                return async (...args: unknown[]) => {
                  calls += 1;
                  const isNow = calls === at && !isStruck;
                  if (isNow && when === 'before') await tell();
                  const answer: unknown = await Reflect.apply(value as () => unknown, target, args);
                  if (isNow && when === 'after') await tell();
                  return answer;
                };
              },
            }),
        });
        const run = watched(subject.start('e'));
        await world.until('the start', () => run.state === 'given');
        await world.advance(3000);
        const { id = '' } = run.value ?? {};
        if (!isStruck || (await world.reader.listSignals(id, { name: 'approved', after: 0, limit: 1 })).length === 0) {
          return calls < at ? 'survives' : 'struck';
        }
        same((await world.ended(id, 3000)).output, { b: 'crossed' }, 'its end');
        same(labels(world), ['a@1', 'b@1'], 'what ran');
        return 'struck';
      }),
    );
  });
}
