/** `replay` of every flow of the engine suite: a complete history matches its own definition, and so does each beginning of it. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Flow } from '../../src/conformance/engine-suite/flow.ts';
import { PLAIN_FLOWS, TIMED_FLOWS } from '../../src/conformance/engine-suite/flows/flows.ts';
import { BLOCK_FLOWS, OTHER_FLOWS, STATE_FLOWS } from '../../src/conformance/engine-suite/flows/flows-of-blocks.ts';
import { CHILD_FLOWS } from '../../src/conformance/engine-suite/flows/flows-of-children.ts';
import { FORM_FLOWS, PARALLEL_FLOWS } from '../../src/conformance/engine-suite/flows/flows-of-forms.ts';
import { WAIT_FLOWS } from '../../src/conformance/engine-suite/flows/flows-of-waits.ts';
import { suiteScripts } from '../../src/conformance/engine-suite/world/scripts.ts';
import type { Subject, SuiteScript } from '../../src/conformance/engine-suite/world/subject.ts';
import type { ExecutionHistory } from '../../src/engine/execution/execution-history.ts';
import { createTestOrchestrator, manualClock, replay } from '../../src/entries/testing.ts';
import type { Script } from '../../src/testing-kit/stub-script.ts';

const FLOWS: readonly Flow[] = [
  ...[...PLAIN_FLOWS, ...TIMED_FLOWS, ...BLOCK_FLOWS, ...STATE_FLOWS, ...PARALLEL_FLOWS],
  ...[...FORM_FLOWS, ...WAIT_FLOWS, ...CHILD_FLOWS, ...OTHER_FLOWS],
];

/** Runs a flow. @returns its history, and the options to replay it */
async function record({ ensemble, options = {}, run, signals = [] }: Flow) {
  const clock = manualClock();
  const storage = memoryStorage();
  const scripts = { ...suiteScripts(clock), ...options.scripts };
  const known = Object.entries(scripts).filter((entry): entry is [string, SuiteScript] => entry[1] !== undefined);
  const definitions = {
    ensembles: [...(ensemble ? [ensemble] : []), ...(options.ensembles ?? [])] as never[],
    agents: [...(options.agents ?? [])] as never[],
    scripts: Object.fromEntries(known) as Record<string, Script>,
  };
  const orchestrator = createTestOrchestrator({ ...definitions, clock, storage, autoAdvance: false });
  const subject = orchestrator as unknown as Subject;
  const running = run ? run(subject) : subject.execute('e', { n: 1 });
  let id: string | undefined;
  void running.then((ended) => {
    id = ended.id;
  });
  for (const { ms, id: signal, name, payload = null } of signals) {
    clock.setTimer(ms, async () => {
      const [first] = (await storage.executions.list({ limit: 250 })).filter(({ parentId }) => parentId === undefined);
      await orchestrator.executions.signal(first?.id ?? '', name, payload, { idempotencyKey: signal }).catch(() => {});
    });
  }
  for (let i = 0; i < 100_000 && id === undefined; i++) await clock.advance(Math.min(clock.nextIn ?? 100, 100));
  return { history: await orchestrator.executions.history(id as string), definitions };
}

describe('replay', () => {
  for (const flow of FLOWS) {
    it(`matches its own definition: ${flow.title}`, async () => {
      const { history, definitions } = await record(flow);
      const stored = JSON.parse(JSON.stringify(history)) as ExecutionHistory;
      expect(await replay(stored, definitions)).toEqual({ matches: true });
      const { end: _end, ...open } = { ...stored, status: 'running' as const };
      const lengths = [...new Set([0, 1, Math.floor(stored.steps.length / 2), stored.steps.length - 1])];
      for (const length of lengths.filter((one) => one >= 0)) {
        const beginning = { ...open, steps: stored.steps.slice(0, length) };
        expect([length, await replay(beginning, definitions)]).toEqual([length, { matches: true }]);
      }
    });
  }
});
