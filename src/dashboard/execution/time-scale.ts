/** A scale of time in which long idle times are folded to a short piece, so that work of milliseconds is seen between waits of days. Pure. */

import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';

/** A piece of the scale. Positions are shares of the width, 0 to 1; instants are Unix ms. */
export interface TimePiece {
  readonly from: number;
  readonly to: number;
  readonly left: number;
  readonly right: number;
  /** Nothing worked in it, and its width does not show its length. */
  readonly isFolded: boolean;
}

export interface TimeScale {
  readonly pieces: readonly TimePiece[];
  /** The position of an instant. */
  at(instant: number): number;
}

type Span = readonly [from: number, to: number];

/** What works: other kinds of steps contain these, or wait. */
const WORK: ReadonlySet<string> = new Set(['agent', 'model', 'tool', 'send']);
/** An idle time is folded if it is longer than this, in ms, and than the share below of all work. */
const FOLD_MS = 1_000;
const FOLD_SHARE = 0.5;
/** The width of a folded piece. */
const FOLD_WIDTH = 0.06;
/** All folded pieces have at most this width together. */
const FOLDS_WIDTH = 0.5;

export function toTimeScale(steps: readonly ExecutionStep[], from: number, to: number): TimeScale {
  const work = mergeSpans(
    steps.flatMap(({ kind, startedAt, duration }) => (WORK.has(kind) ? [[startedAt, startedAt + duration]] : [])),
  );
  const worked = work.reduce((sum, [begin, end]) => sum + end - begin, 0);
  const longest = Math.max(FOLD_MS, worked * FOLD_SHARE);
  const pieces: { from: number; to: number; isFolded: boolean }[] = [];
  const add = (begin: number, end: number, isFolded: boolean) => {
    if (end <= begin) return;
    const last = pieces.at(-1);
    if (last && !isFolded && !last.isFolded) last.to = end;
    else pieces.push({ from: begin, to: end, isFolded });
  };
  let reached = from;
  for (const [begin, end] of [...work, [to, to] as const]) {
    add(reached, begin, begin - reached > longest);
    add(Math.max(reached, begin), end, false);
    reached = Math.max(reached, end);
  }
  if (pieces.length === 0) pieces.push({ from, to: Math.max(to, from + 1), isFolded: false });
  return scaleOf(pieces);
}

function mergeSpans(spans: readonly Span[]): readonly Span[] {
  const result: [number, number][] = [];
  for (const [begin, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
    else result.push([begin, end]);
  }
  return result;
}

function scaleOf(pieces: readonly Pick<TimePiece, 'from' | 'to' | 'isFolded'>[]): TimeScale {
  const folds = pieces.filter(({ isFolded }) => isFolded).length;
  const foldWidth = folds === pieces.length ? 1 / folds : Math.min(FOLD_WIDTH, FOLDS_WIDTH / Math.max(1, folds));
  const open = pieces.reduce((sum, { from, to, isFolded }) => sum + (isFolded ? 0 : to - from), 0);
  const openWidth = 1 - folds * foldWidth;
  let left = 0;
  const placed = pieces.map((piece) => {
    const width = piece.isFolded ? foldWidth : (openWidth * (piece.to - piece.from)) / open;
    const own = { ...piece, left, right: left + width };
    left += width;
    return own;
  });
  return {
    pieces: placed,
    at(instant) {
      const piece = placed.find(({ to }) => instant <= to);
      if (!piece) return 1;
      const share = Math.max(0, instant - piece.from) / (piece.to - piece.from);
      return piece.left + share * (piece.right - piece.left);
    },
  };
}
