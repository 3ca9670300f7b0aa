/** `rateLimit` of a batch: a server never receives more mails in a second, whatever each send takes. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import { type BatchOutput, createOrchestrator, fetchHttp, type MailSender } from '../../src/index.ts';

const ensemble = (rateLimit: number, recipients: number) => ({
  name: 'e',
  flow: [
    {
      agent: 'send',
      operation: 'email',
      config: {
        ...{ from: 'a@x.com', subject: 's', body: 'b', rateLimit },
        batch: { recipients: Array.from({ length: recipients }, (_, i) => ({ email: `p${i}@x.com` })) },
      },
    },
  ],
  outputs: { send: '${send.output}' },
});

/** The most instants in a window of this length, its end not included. */
function most(instants: readonly number[], windowMs: number): number {
  return Math.max(...instants.map((from) => instants.filter((at) => at >= from && at < from + windowMs).length));
}

interface Send {
  readonly ms: number;
  /** When the server receives it, from 0 (at its begin) to 1 (at its end). */
  readonly received: number;
  readonly fails: boolean;
}

const sends = fc.array(
  fc.record({
    ms: fc.constantFrom(0, 1, 10, 90, 400, 999, 1_000, 1_500),
    received: fc.constantFrom(0, 0.5, 1),
    fails: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
);

it('holds for sends of any duration, received at any moment, and over a crash at any of them', {
  timeout: 120_000,
}, async () => {
  const rate = fc.constantFrom(0.4, 0.5, 1, 1.5, 2, 3, 7);
  await fc.assert(
    fc.asyncProperty(rate, sends, fc.nat(14), fc.nat(3_000), async (rateLimit, list, crashAt, pause) => {
      const clock = manualClock();
      const received: number[] = [];
      let crashes = crashAt < list.length;
      const sender: MailSender = {
        async send({ to, messageId }) {
          const index = Number(/\d+/.exec(to[0]?.address ?? '')?.[0]);
          const { ms, received: part, fails } = list[index] as Send;
          await clock.sleep(ms * part);
          received.push(clock.now());
          if (crashes && index === crashAt) await new Promise(() => {});
          await clock.sleep(ms * (1 - part));
          if (fails) throw new Error('after it was received');
          return { messageId };
        },
      };
      const options = { clock, mail: { smtp: sender }, ensembles: [ensemble(rateLimit, list.length)] };
      const orchestrator = createTestOrchestrator({ ...options, autoAdvance: false });
      const { id } = await orchestrator.start('e');
      let now = orchestrator;
      for (let ms = 0; (await now.executions.get(id)).status === 'running' && ms < 200_000; ms += 50) {
        await clock.advance(50);
        if (crashes && received.length > crashAt) {
          crashes = false;
          // Another process may take over at once, or later.
          await clock.advance(pause % 2 === 0 ? 0 : pause);
          now = (await now.crash()) as typeof now;
        }
      }
      expect((await now.executions.get(id)).finishedAt).toBeDefined();
      const windowMs = rateLimit < 1 ? 1_000 / rateLimit : 1_000;
      expect(most(received, windowMs)).toBeLessThanOrEqual(Math.max(1, Math.floor(rateLimit)));
      await now.close({ grace: 0 });
    }),
    { numRuns: 60 },
  );
});

it.each([
  [2, 5, 2_000],
  [1, 3, 3_000],
  [10, 25, 2_000],
  [0.5, 2, 4_000],
])('%d mails a second are %d recipients within %d ms', async (rate, count, ms) => {
  const sender: MailSender = { send: ({ messageId }) => ({ messageId }) };
  const orchestrator = createTestOrchestrator({ mail: { smtp: sender }, ensembles: [ensemble(rate, count)] });
  expect((await orchestrator.execute('e')).duration).toBe(ms);
});

it('holds at a real server, measured there', { timeout: 60_000 }, async () => {
  const received: number[] = [];
  const server: Server = createServer((request, response) => {
    request.resume();
    received.push(performance.now());
    setTimeout(() => response.end('{}'), (received.length % 4) * 10);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`;
  const sender: MailSender = {
    async send({ messageId }, { http, timeoutMs, signal }) {
      await http.send({ method: 'POST', url, body: '{}', timeoutMs, signal });
      return { messageId };
    },
  };
  const http = fetchHttp({ allow: ['127.0.0.0/8'] });
  const orchestrator = createOrchestrator({ http, mail: { smtp: sender }, ensembles: [ensemble(20, 61)] });
  const { output, duration } = await orchestrator.execute('e');
  await orchestrator.close();
  await new Promise((resolve) => server.close(resolve));
  expect((output as { send: BatchOutput }).send.sent).toBe(61);
  // The clock of this test and that of the server are read at other moments of the same send.
  expect(most(received, 995)).toBeLessThanOrEqual(20);
  expect(duration).toBeGreaterThanOrEqual(2_990);
});
