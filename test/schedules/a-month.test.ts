/** Thirty virtual days with schedules, sleeps, approvals and child executions. */

import { describe, expect, it } from 'vitest';
import type { Execution } from '../../src/engine/execution/execution.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { allExecutions, DAY, HOUR } from './schedule-world.ts';

const INVOICES = {
  name: 'invoices',
  trigger: [{ type: 'schedule', cron: '0 8 * * *', timezone: 'Europe/Berlin', input: { region: 'eu' } }],
  flow: [
    { sleep: '90m' },
    { agent: 'collect', operation: 'code', config: { script: 'collect' } },
    { wait: 'approved', timeout: '6h', onTimeout: 'continue', name: 'approval' },
    {
      if: '${approval.output != null}',
      then: [{ ensemble: 'send', input: { day: '${collect.output}', by: '${approval.output.by}' } }],
      else: [{ ensemble: 'remind', detached: true, input: { day: '${collect.output}' } }],
    },
  ],
  outputs: { day: '${collect.output}', sent: '${send.output.receipt}' },
} as const;
const SEND = {
  name: 'send',
  flow: [{ sleep: '10m' }, { agent: 'mail', operation: 'code', config: { script: 'mail' }, input: '${input}' }],
  outputs: { receipt: '${mail.output}' },
} as const;
const REMIND = {
  name: 'remind',
  flow: [
    { foreach: [1, 2, 3], steps: [{ sleep: '1d' }, { agent: 'note', operation: 'code', config: { script: 'note' } }] },
  ],
} as const;

describe('thirty days', () => {
  it('of a daily report that people approve or forget: one report each day, at its hour, with all further steps', async () => {
    const mails: unknown[] = [];
    let days = 0;
    let notes = 0;
    const orchestrator = createTestOrchestrator({
      retention: 90 * DAY,
      ensembles: [INVOICES, SEND, REMIND],
      scripts: {
        collect: () => ++days,
        mail: ({ input }) => {
          mails.push(input);
          return `receipt ${mails.length}`;
        },
        note: () => ++notes,
      },
    });
    const { clock } = orchestrator;
    await orchestrator.ready();
    const from = clock.now();
    for (let day = 0; day < 30; day++) {
      // At noon in Berlin, three hours into the wait: people approve, except on every third day.
      await clock.advance(11 * HOUR);
      const { executions } = await orchestrator.executions.list({ ensemble: 'invoices', status: 'waiting' });
      expect(executions).toHaveLength(1);
      const [waiting] = executions as readonly [Execution];
      if (day % 3 < 2) await orchestrator.executions.signal(waiting.id, 'approved', { by: 'Ada' });
      await clock.advance(DAY - 11 * HOUR);
    }
    // The reminders of the last days.
    await clock.advance(3 * DAY + HOUR);
    const all = await allExecutions(orchestrator as never);
    await orchestrator.close({ grace: 0 });

    const reports = all.filter(({ ensemble }) => ensemble === 'invoices').slice(0, 30);
    expect(reports.map(({ status, trigger }) => [status, (trigger.scheduledAt as number) - from])).toEqual(
      // 8 in the morning in Berlin is 7 in Greenwich in winter.
      Array.from({ length: 30 }, (_, day) => ['completed', day * DAY + 7 * HOUR]),
    );
    const isApproved = (day: number) => day % 3 < 2;
    expect(mails.slice(0, 20)).toEqual(
      Array.from({ length: 30 }, (_, day) => day)
        .filter(isApproved)
        .map((day) => ({ day: day + 1, by: 'Ada' })),
    );
    expect(
      reports.map(({ output }, day) => ((output as { sent: unknown }).sent !== null) === isApproved(day)),
    ).not.toContain(false);
    const reminders = all.filter(
      ({ ensemble, parentId }) => ensemble === 'remind' && reports.some(({ id }) => id === parentId),
    );
    expect(reminders.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 'completed'));
    expect(notes).toBeGreaterThanOrEqual(30);
  });
});
