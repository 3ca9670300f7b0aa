/** One execution, its steps, and its events while it has not ended. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { readEventStream } from '../../engine/base/bytes/read-event-stream.ts';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { RunningSteps } from '../../orchestrator/runs/steps-at-work.ts';
import type { ApiProblem, Client } from '../api/client.ts';
import { type Data, toProblem, useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';

/** Larger outputs are loaded when a person looks at them, in bytes. */
const MAX_OUTPUT = 2_048;
const PAGE_SIZE = 250;
/** The shortest time between two reads of an execution that runs, in ms. After a read that took long, it is longer. */
const EVERY_MS = 1_000;
const REST_SHARE = 10;

export interface StepPage {
  readonly cursor: string | undefined;
  readonly steps: readonly ExecutionStep[];
  readonly nextCursor?: string;
}

export interface ShownExecution extends Data<Execution<unknown>> {
  readonly steps: readonly ExecutionStep[];
  /** Why the steps can't be read. */
  readonly stepsProblem: ApiProblem | undefined;
  /** Undefined for an execution that had ended before. */
  readonly connection: Connection | undefined;
}

export function useExecution(id: string): ShownExecution {
  const { client } = useApp();
  const record = useData(id, (api, signal) => api.call('GET /executions/:id', { id }, signal));
  const [pages, setPages] = useState<readonly StepPage[]>([]);
  const [atWork, setAtWork] = useState<RunningSteps['steps']>([]);
  const [stepsProblem, setStepsProblem] = useState<ApiProblem>();
  const [connection, setConnection] = useState<Connection>();
  const known = useRef<readonly StepPage[]>([]);
  const reloadRecord = useRef(record.reload);
  reloadRecord.current = record.reload;
  const { status, finishedAt } = record.value ?? {};
  const hasEnded = finishedAt !== undefined;
  const mayBeAtWork = !hasEnded || status === 'cancelled' || status === 'timed_out';
  const isKnown = record.value !== undefined;

  // The steps are read at once, again after events, and once more when the execution has ended.
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const show = (read: readonly StepPage[]) => {
      known.current = read;
      setPages(read);
    };
    const refresh = throttleWhileShown(signal, async () => {
      try {
        const running = mayBeAtWork ? client.call('GET /executions/:id/running', { id }, signal) : undefined;
        running?.catch(() => {});
        await readSteps(client, id, known.current, show, signal);
        setAtWork((await running)?.steps ?? []);
        setStepsProblem(undefined);
      } catch (thrown) {
        if (!signal.aborted) setStepsProblem(toProblem(thrown));
      }
    });
    refresh();
    if (isKnown && !hasEnded) {
      const onEvent = throttleWhileShown(signal, async () => {
        refresh();
        reloadRecord.current();
      });
      void followEvents(client, id, signal, { onEvent, onChange: setConnection });
    }
    return () => controller.abort();
  }, [client, id, isKnown, hasEnded, mayBeAtWork]);
  const steps = useMemo(() => {
    const stored = pages.flatMap((page) => page.steps);
    return withRunning(stored, atWork, finishedAt);
  }, [pages, atWork, finishedAt]);
  return { ...record, steps, stepsProblem, connection: hasEnded ? undefined : connection };
}

/**
 * Nothing is stored of an agent in its first attempt, also if it was stopped. It began when what came before it had ended, about.
 * @param finishedAt - of an execution that was stopped
 */
function withRunning(
  stored: readonly ExecutionStep[],
  atWork: RunningSteps['steps'],
  finishedAt: number | undefined,
): readonly ExecutionStep[] {
  if (atWork.length === 0) return stored;
  const known = new Set(stored.map(({ key }) => key));
  const now = finishedAt ?? Date.now();
  const ends = stored.map(({ status, startedAt, duration }) => startedAt + (OVER.has(status) ? duration : 0));
  const startedAt = ends.reduce((latest, end) => Math.max(latest, end), 0) || now;
  const status = finishedAt === undefined ? ('running' as const) : ('cancelled' as const);
  const about = { kind: 'agent', status, attempts: 1, startedAt, duration: Math.max(0, now - startedAt) } as const;
  return [...stored, ...atWork.filter(({ key }) => !known.has(key)).map((one) => ({ ...one, ...about }))];
}

/** Calls `work` at once, and then at most once in a while, never twice at the same time and never while the tab is hidden. */
function throttleWhileShown(signal: AbortSignal, work: () => Promise<void>): () => void {
  let isBusy = false;
  let isDue = false;
  const run = async () => {
    if (isBusy || signal.aborted) {
      isDue = true;
      return;
    }
    [isBusy, isDue] = [true, false];
    const began = performance.now();
    await work();
    const restMs = Math.max(EVERY_MS, REST_SHARE * (performance.now() - began));
    do await new Promise((resolve) => setTimeout(resolve, restMs));
    while (document.hidden && !signal.aborted);
    isBusy = false;
    if (isDue) void run();
  };
  return () => void run();
}

/** Reads the pages whose steps may have changed, and those after them, and shows each as it arrives. */
async function readSteps(
  client: Client,
  id: string,
  before: readonly StepPage[],
  show: (pages: readonly StepPage[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const pages: StepPage[] = [];
  let cursor: string | undefined;
  for (let i = 0; ; i++) {
    const kept = before[i];
    const isKept = kept !== undefined && kept.cursor === cursor && isSettled(kept);
    const page: StepPage = isKept ? kept : await readPage(client, id, cursor, signal);
    if (signal.aborted) return;
    pages.push(page);
    cursor = page.nextCursor;
    if (!isKept || cursor === undefined) show([...pages, ...(cursor === undefined ? [] : before.slice(i + 1))]);
    if (cursor === undefined) return;
  }
}

async function readPage(
  client: Client,
  id: string,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<StepPage> {
  const query = { limit: PAGE_SIZE, cursor, maxOutput: MAX_OUTPUT };
  const { steps, nextCursor } = await client.call('GET /executions/:id/steps', { id, query }, signal);
  return { cursor, steps, ...(nextCursor !== undefined && { nextCursor }) };
}

/** The end of a cancelled step is that of what stopped it. */
const OVER: ReadonlySet<string> = new Set(['completed', 'failed', 'skipped']);
const OPEN: ReadonlySet<string> = new Set(['running', 'waiting', 'retrying']);

/** Whether a step has not ended. */
export function isOpen({ status }: Pick<ExecutionStep, 'status'>): boolean {
  return OPEN.has(status);
}

/** How long a step took, or has worked until now, ms. */
export function durationOf(step: ExecutionStep, now: number): number {
  return isOpen(step) ? Math.max(step.duration, now - step.startedAt) : step.duration;
}

/** Whether no step of a page can change any more. */
function isSettled({ steps, nextCursor }: StepPage): boolean {
  return nextCursor !== undefined && !steps.some(isOpen);
}

type Connection = 'open' | 'lost' | 'ended';

interface Follow {
  onEvent(): void;
  onChange(connection: Connection): void;
}

const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 15_000;

/** Reads the events of an execution until it ends or the signal aborts. After a lost connection it continues where it was. */
async function followEvents(client: Client, id: string, signal: AbortSignal, follow: Follow): Promise<void> {
  let after: string | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const stream = await client.stream(id, after, signal);
      if (!stream) return follow.onChange('ended');
      follow.onChange('open');
      pauseMs = FIRST_PAUSE_MS;
      for await (const { id: last } of readEventStream(stream)) {
        after = last;
        follow.onEvent();
      }
    } catch {
      if (signal.aborted) return;
      follow.onChange('lost');
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
