/** An orchestrator on a manual clock, whose notifications go to a stub. */

import type { StubAnswer, StubCall, StubHttp } from '../../src/entries/testing.ts';
import { manualClock, stubHttp } from '../../src/entries/testing.ts';
import { createOrchestrator, type OrchestratorOptions } from '../../src/index.ts';

export const URL = 'https://shop.example/hooks';
/** The events that a webhook of {@link notifying} is sent. */
export const ALL_EVENTS =
  '[execution.started, execution.completed, execution.failed, execution.timeout, agent.completed, state.updated]';

/** An ensemble with one webhook. Its only agent runs the script `work`. */
export function notifying(fields = `events: ${ALL_EVENTS}`, rest = ''): string {
  return `
name: pay
notifications:
  - { type: webhook, url: ${URL}, ${fields} }
${rest}
flow:
  - { agent: work, operation: code, config: { script: work } }
outputs: { paid: "\${work.output.paid}" }
`;
}

export function setUp(answer: StubAnswer = { status: 204 }, options: OrchestratorOptions = {}) {
  const clock = (options.clock as ReturnType<typeof manualClock> | undefined) ?? manualClock();
  const http: StubHttp = stubHttp({ [URL]: answer });
  const lines: { readonly level: string; readonly message: string; readonly about: Record<string, unknown> }[] = [];
  const log = (level: string) => (about: unknown, message?: string) => {
    lines.push({ level, message: message ?? '', about: about as Record<string, unknown> });
  };
  const orchestrator = createOrchestrator({
    clock,
    http,
    logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    scripts: { work: () => ({ paid: 7 }) },
    ensembles: [notifying()],
    ...options,
  });
  /** Lets everything happen that is due now. */
  const settle = () => clock.advance(0);
  return { clock, http, orchestrator, lines, settle };
}

/** The header of a call. */
export function headerOf({ headers = {} }: StubCall, name: string): string | undefined {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
}

export function eventOf(call: StubCall) {
  return call.json as { readonly event: string; readonly timestamp: string; readonly data: Record<string, unknown> };
}
