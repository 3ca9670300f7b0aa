/** An engine that knows no storage: its runs write to a list of entries, and a run whose process died continues from that list. */

import { describe, expect, it } from 'vitest';
import {
  ActiveRun,
  type CommitEntry,
  type Execution,
  type LoadedDefinition,
  type NewExecution,
  type RunLog,
} from '../../src/entries/adapter.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, type ExecutionEngine, memoryStorage } from '../../src/index.ts';

/** The log of one execution: every entry that its runs wrote. */
interface Log {
  readonly execution: NewExecution;
  readonly loaded: LoadedDefinition;
  readonly entries: CommitEntry[];
}

/** @param diesAt - the number of the entry that is not stored, because its process dies */
function logEngine(diesAt: number) {
  const clock = manualClock();
  const logs: Log[] = [];
  const unused = () => Promise.reject(new Error('not used here'));
  const run = ({ execution, loaded, entries }: Log, epoch: number) => {
    const records = entries.flatMap(({ steps }) => steps);
    const log: RunLog = {
      write(entry) {
        if (epoch === 1 && entries.length + 1 >= diesAt) return new Promise(() => {});
        entries.push(entry);
        return 'stored';
      },
      readState: () => undefined,
      listSignals: () => [],
    };
    const held = { execution, epoch, startedAt: execution.createdAt, records, cancelled: false, resumed: epoch > 1 };
    return new ActiveRun({ log, clock }, held, loaded);
  };
  const engine: ExecutionEngine = {
    attach: () => ({
      runRecords: { executions: { get: unused, countDescendants: unused }, signals: { list: unused } },
      active: 0,
      begin(execution, loaded) {
        const log = { execution, loaded, entries: [] };
        logs.push(log);
        return { finished: run(log, 1).finished };
      },
      open: () => undefined,
      whenEnded: unused,
      cancel: unused,
      signal: unused,
      runDue: unused,
      close: async () => undefined,
    }),
  };
  const resume = (): Promise<Execution | undefined> => run(logs[0] as Log, 2).finished;
  return { engine, resume, entries: () => logs[0]?.entries ?? [] };
}

const FLOW = [
  { agent: 'a', operation: 'code', config: { script: 'count' } },
  { parallel: ['b', 'c'].map((agent) => ({ agent, operation: 'code', config: { script: 'count' } })) },
  { agent: 'd', operation: 'code', config: { script: 'count' }, input: '${a.output + b.output + c.output}' },
];

describe('a run over a log', () => {
  it('ends with an entry that has the end', async () => {
    const { engine, entries } = logEngine(Number.POSITIVE_INFINITY);
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'e', flow: FLOW, outputs: { sum: '${d.output}' } }],
      scripts: { count: ({ input }) => (typeof input === 'number' ? input + 1 : 1) },
      storage: memoryStorage(),
      engine,
    });
    expect(await orchestrator.execute('e')).toMatchObject({ status: 'completed', output: { sum: 4 } });
    expect(entries().at(-1)).toMatchObject({ end: { status: 'completed' } });
  });

  it.each([1, 2, 3, 4])('continues after the last stored entry, when the process dies at entry %d', async (diesAt) => {
    const ran: string[] = [];
    const { engine, resume, entries } = logEngine(diesAt);
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'e', flow: FLOW, outputs: { sum: '${d.output}' } }],
      scripts: {
        count({ input, execution }) {
          ran.push(execution.agent);
          return typeof input === 'number' ? input + 1 : 1;
        },
      },
      storage: memoryStorage(),
      engine,
    });
    await orchestrator.start('e');
    await new Promise((resolve) => setImmediate(resolve));
    const stored = entries().flatMap(({ steps }) => steps.filter(({ note }) => !note).map(({ name }) => name));
    ran.length = 0;
    expect(await resume()).toMatchObject({ status: 'completed', output: { sum: 4 } });
    expect(ran.filter((agent) => stored.includes(agent))).toEqual([]);
    expect([...stored, ...ran].sort()).toEqual(['a', 'b', 'c', 'd']);
  });
});
