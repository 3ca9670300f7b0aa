/** An app whose executions run until they are told to end. */

import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { ExecutionEngine } from '../../src/index.ts';

/** An ensemble with one slot for each customer, whose script ends when it is told to. */
export function world(
  concurrency: object | null = { limit: 1, key: '${input.customer}' },
  { more = [], sharedLimits = {}, rules = {}, ...options }: WorldOptions = {},
) {
  const open = new Map<string, () => void>();
  let most = 0;
  const orchestrator = createTestOrchestrator({
    ensembles: [
      {
        name: 'export',
        ...(concurrency && { concurrency }),
        ...rules,
        trigger: [
          { type: 'webhook', path: '/hooks/export', public: true, async: true },
          { type: 'schedule', cron: '0 * * * *', input: { customer: 'acme', job: 'hourly' } },
        ],
        flow: [{ agent: 'write', operation: 'code', config: { script: 'write' } }],
      },
      { name: 'parent', flow: [{ ensemble: 'export', input: '${input}' }] },
      ...more,
    ] as never,
    sharedLimits: sharedLimits as never,
    ...options,
    scripts: {
      write: ({ input }: { readonly input: { readonly job: string; readonly fail?: boolean } }) =>
        new Promise<string>((resolve, reject) => {
          open.set(input.job, () => {
            open.delete(input.job);
            if (input.fail) reject(new Error('refused'));
            else resolve(input.job);
          });
          most = Math.max(most, open.size);
        }),
    },
  });
  const settle = async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    orchestrator,
    settle,
    running: () => [...open.keys()].sort(),
    most: () => most,
    async finish(job: string) {
      open.get(job)?.();
      await settle();
    },
  };
}

interface WorldOptions {
  readonly more?: readonly object[];
  readonly sharedLimits?: object;
  /** More keys of the ensemble. */
  readonly rules?: object;
  readonly engine?: ExecutionEngine;
}
