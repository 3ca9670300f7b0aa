/** Answers the waits of a run: with signals of the command line, with what a person types, or not at all. */

import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { SignalForm } from '../../engine/signal/signal-page.ts';
import type { GivenSignals } from '../project/read-signals.ts';
import type { Orchestrator } from '../start.ts';
import { type Asker, createAsker } from '../terminal/ask-line.ts';
import type { Output } from '../terminal/output.ts';
import { pause } from '../terminal/pause.ts';
import { formatDuration, oneLine } from '../terminal/text.ts';
import type { ProgressDisplay } from './live-progress.ts';

/** A `wait` that a run has reached. */
export interface AwaitedSignal {
  readonly executionId: string;
  readonly signal: string;
  /** Unix ms; infinity without a timeout. */
  readonly until: number;
}

export interface WaitAnswers {
  /** Resolves as soon as the run only waits, for signals that nothing here sends. */
  readonly stuck: Promise<readonly AwaitedSignal[]>;
  /** The names of given signals that no `wait` took. */
  unused(): string[];
  end(): void;
}

interface AnswerDependencies {
  readonly signals: GivenSignals;
  /** Whom to ask. Undefined without a terminal. */
  readonly terminal: Pick<NodeJS.Process, 'stdin'> | undefined;
  readonly output: Output;
  readonly progress: ProgressDisplay | undefined;
}

/** A run that continues by itself within this time, because a `wait` times out, is not ended. */
const PATIENCE_MS = 60_000;
const MAX_PAUSE_MS = 3_600_000;
const MAX_TIMER_MS = 2 ** 31 - 1;

export function answerWaits(orchestrator: Orchestrator, dependencies: AnswerDependencies): WaitAnswers {
  const left = new Map([...dependencies.signals].map(([name, payloads]) => [name, [...payloads]]));
  const ended = new AbortController();
  // A run that resumes reaches the same waits again.
  const seen = new Set<string>();
  const unanswered = new Set<AwaitedSignal>();
  let continuesAt = 0;
  let sent: Promise<unknown> = Promise.resolve();
  let isWatching = false;
  let resolveStuck: (waits: readonly AwaitedSignal[]) => void = () => {};
  const stuck = new Promise<readonly AwaitedSignal[]>((resolve) => {
    resolveStuck = resolve;
  });

  const leave = (wait: AwaitedSignal) => {
    unanswered.add(wait);
    if (isWatching) return;
    isWatching = true;
    watch().catch(() => {
      // The orchestrator is closed: the run has ended.
    });
  };
  const watch = async () => {
    while (!ended.signal.aborted) {
      const known = sent;
      await known;
      // Returns when no run is active any more.
      const { nextDueAt } = await orchestrator.runDue();
      if (ended.signal.aborted) return;
      // A signal was sent meanwhile, so the run continues.
      if (sent !== known) continue;
      const now = Date.now();
      for (const wait of unanswered) if (wait.until <= now) unanswered.delete(wait);
      const isPatient = now < continuesAt || [...unanswered].some(({ until }) => until < now + PATIENCE_MS);
      if (unanswered.size > 0 && (nextDueAt === undefined || !isPatient)) return resolveStuck([...unanswered]);
      await pause(Math.min(Math.max(1, (nextDueAt ?? 0) - now), MAX_PAUSE_MS), ended.signal);
    }
  };
  const asking =
    dependencies.terminal && createQuestions(orchestrator, dependencies, dependencies.terminal, leave, ended.signal);

  orchestrator.on('agent.retrying', ({ data }) => {
    continuesAt = Math.max(continuesAt, data.retryAt);
  });
  orchestrator.on('step.waiting', ({ data }) => {
    const { executionId, key, signal, until = Number.POSITIVE_INFINITY } = data;
    if (signal === undefined) {
      continuesAt = Math.max(continuesAt, until);
      return;
    }
    const place = `${executionId} ${key}`;
    if (seen.has(place)) return;
    seen.add(place);
    const payloads = left.get(signal) ?? [];
    const wait = { executionId, signal, until };
    if (payloads.length > 0) {
      const sending = send(orchestrator, wait, payloads.shift(), dependencies.output);
      sent = sent.then(async () => {
        if (!(await sending)) leave(wait);
      });
    } else if (asking) asking.add(wait);
    else leave(wait);
  });
  return {
    stuck,
    unused: () => [...left].flatMap(([name, payloads]) => (payloads.length > 0 ? [name] : [])),
    end() {
      ended.abort();
      asking?.close();
    },
  };
}

/** @returns false for a payload that does not fit, so that the wait needs another one */
async function send(
  { executions }: Orchestrator,
  { executionId, signal }: AwaitedSignal,
  payload: unknown,
  { say }: Output,
): Promise<boolean> {
  try {
    await executions.signal(executionId, signal, payload);
    return true;
  } catch (error) {
    say(`signal ${signal} could not be sent: ${oneLine(messageOf(error))}\n`);
    return !isOrchestratorError(error, 'INVALID_INPUT');
  }
}

/** Asks one question after the other. @param leave - receives the waits that nobody answers, because the input has ended */
function createQuestions(
  orchestrator: Orchestrator,
  { output, progress }: AnswerDependencies,
  { stdin }: Pick<NodeJS.Process, 'stdin'>,
  leave: (wait: AwaitedSignal) => void,
  ended: AbortSignal,
) {
  const asker = createAsker(stdin);
  let last: Promise<void> = Promise.resolve();
  const ask = async (wait: AwaitedSignal): Promise<void> => {
    const { executionId, signal, until } = wait;
    if (ended.aborted || until <= Date.now()) return;
    const { ensemble, forms = {} } = await orchestrator.executions.get(executionId);
    progress?.pause?.();
    const time = Number.isFinite(until) ? `, at most ${formatDuration(until - Date.now())}` : '';
    output.say(`${oneLine(ensemble)} waits for the signal ${signal}${time}\n`);
    for (const line of formLines(forms[signal])) output.say(`  ${oneLine(line)}\n`);
    for (;;) {
      const answer = await readAnswer(asker, output, until, ended);
      if (answer === 'no input') leave(wait);
      if (typeof answer === 'string' || (await send(orchestrator, wait, answer.payload, output))) break;
    }
    progress?.resume?.();
  };
  return {
    add(wait: AwaitedSignal) {
      last = last.then(() => ask(wait)).catch((error) => output.say(`${oneLine(messageOf(error))}\n`));
    },
    close: () => asker.close(),
  };
}

/** What a wait asks for. */
function formLines({ title, text, fields }: SignalForm = {}): string[] {
  const required = (fields?.required ?? []) as readonly string[];
  const named = Object.entries((fields?.properties ?? {}) as Readonly<Record<string, JsonObject>>).map(
    ([name, { type, enum: allowed }]) =>
      `${name}${required.includes(name) ? '' : '?'}: ${Array.isArray(allowed) ? allowed.map((one) => JSON.stringify(one)).join(' | ') : (type ?? 'any')}`,
  );
  return [title, text, named.length > 0 ? `{ ${named.join(', ')} }` : undefined].filter((line) => line !== undefined);
}

type Answer = { readonly payload: unknown } | 'no input' | 'too late';

async function readAnswer(asker: Asker, { say }: Output, until: number, ended: AbortSignal): Promise<Answer> {
  const left = Math.min(Math.max(0, until - Date.now()), MAX_TIMER_MS);
  const over = AbortSignal.any([ended, AbortSignal.timeout(left)]);
  for (;;) {
    say('  payload (JSON or text; an empty line sends null): ');
    const line = await asker.ask(over);
    if (line === undefined) {
      say(over.aborted && !ended.aborted ? '\n  too late: this wait has ended\n' : '\n');
      return over.aborted ? 'too late' : 'no input';
    }
    const read = readPayload(line.trim());
    if (read) return read;
    say('  this begins like JSON, but is not valid JSON\n');
  }
}

/** @returns undefined for a mistake in JSON, which must not be sent as text */
function readPayload(text: string): { readonly payload: unknown } | undefined {
  if (text === '') return { payload: null };
  try {
    return { payload: JSON.parse(text) };
  } catch {
    return /^[[{"]/.test(text) ? undefined : { payload: text };
  }
}
