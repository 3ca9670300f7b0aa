/** Reads from the API for as long as a part of the page is shown, again and again if it wants, and never while the tab is hidden. */

import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-state.ts';
import { ApiProblem, type Client } from './client.ts';

export interface Data<T> {
  /** Undefined before the first answer. It stays when a later read fails. */
  readonly value: T | undefined;
  /** Why the last read failed. */
  readonly problem: ApiProblem | undefined;
  readonly isLoading: boolean;
  /** Reads at once. */
  reload(): void;
}

interface State<T> {
  readonly key: string | undefined;
  readonly value?: T | undefined;
  readonly problem?: ApiProblem | undefined;
}

/**
 * @param key - what is read: another key is another value; undefined reads nothing
 * @param every - the pause between two reads, in ms; without it, the value is read once
 */
export function useData<T>(
  key: string | undefined,
  load: (client: Client, signal: AbortSignal) => Promise<T>,
  every?: number,
): Data<T> {
  const { client } = useApp();
  const [state, setState] = useState<State<T>>({ key: undefined });
  const [turn, setTurn] = useState(0);
  // `load` is another function at each call; `key` says what it reads.
  useEffect(() => {
    if (key === undefined) return;
    return readWhileShown({
      read: (signal) => load(client, signal),
      pauseMs: every === undefined ? undefined : () => Math.max(every, client.pace()),
      onValue: (value) => setState({ key, value }),
      onProblem: (problem) => setState((before) => ({ ...(before.key === key && before), key, problem })),
    });
  }, [key, client, every, turn]);
  const own = state.key === key ? state : { value: undefined, problem: undefined };
  const isLoading = key !== undefined && own.value === undefined && own.problem === undefined;
  return { value: own.value, problem: own.problem, isLoading, reload: () => setTurn((n) => n + 1) };
}

const RETRY_MS = 5_000;

interface Reading<T> {
  read(signal: AbortSignal): Promise<T>;
  /** Undefined: one read. */
  readonly pauseMs: (() => number) | undefined;
  onValue(value: T): void;
  onProblem(problem: ApiProblem): void;
}

/** @returns the function that ends it */
function readWhileShown<T>({ read, pauseMs, onValue, onProblem }: Reading<T>): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** A read was due while the tab was hidden. */
  let isDue = false;
  const run = async () => {
    if (document.hidden) {
      isDue = true;
      return;
    }
    isDue = false;
    let nextMs = pauseMs;
    try {
      const value = await read(signal);
      if (!signal.aborted) onValue(value);
    } catch (thrown) {
      const problem = toProblem(thrown);
      if (!signal.aborted) onProblem(problem);
      // A server that does not answer is asked again.
      if (problem.status === 0) nextMs ??= () => RETRY_MS;
    }
    if (nextMs && !signal.aborted) timer = setTimeout(run, nextMs());
  };
  const onShow = () => {
    if (isDue && !document.hidden) void run();
  };
  document.addEventListener('visibilitychange', onShow);
  void run();
  return () => {
    controller.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onShow);
  };
}

export function toProblem(thrown: unknown): ApiProblem {
  if (thrown instanceof ApiProblem) return thrown;
  return new ApiProblem(0, { code: 'PAGE', message: thrown instanceof Error ? thrown.message : String(thrown) });
}
