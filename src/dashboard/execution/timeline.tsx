/** The time line: a row for each step, with its time on a scale in which idle time is folded. */

import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import { passOf } from '../../engine/ensemble/flow-places.ts';
import { formatDuration, oneLine } from '../format.ts';
import { toneOf } from '../parts/badge.tsx';
import { type StepRow, toRows } from './step-tree.ts';
import { type TimeScale, toTimeScale } from './time-scale.ts';
import { durationOf, isOpen } from './use-execution.ts';

const ROW_PX = 28;
/** Deeper rows are not moved further, so that their names stay in view. */
const MAX_INDENT = 8;
/** A duration stands after its bar; after this share of the width, before it. */
const SPLIT = 0.85;

interface TimelineProps {
  readonly steps: readonly ExecutionStep[];
  readonly from: number;
  readonly to: number;
  readonly chosen: string | undefined;
  onChoose(key: string): void;
}

export function Timeline({ steps, from, to, chosen, onChoose }: TimelineProps) {
  const rows = useMemo(() => toRows(steps), [steps]);
  const scale = useMemo(() => {
    const timed = steps.map((step) => (isOpen(step) ? { ...step, duration: durationOf(step, to) } : step));
    return toTimeScale(timed, from, to);
  }, [steps, from, to]);
  if (rows.length === 0) return <p class="empty">No step has begun.</p>;
  return (
    <div class="timeline">
      <Scale scale={scale} />
      <Rows {...{ rows, scale, to, chosen, onChoose }} />
    </div>
  );
}

interface RowsProps extends Pick<TimelineProps, 'to' | 'chosen' | 'onChoose'> {
  readonly rows: readonly StepRow[];
  readonly scale: TimeScale;
}

function Rows({ rows, scale, to, chosen, onChoose }: RowsProps) {
  const shown = useWindow(rows.length, ROW_PX);
  const { frame } = shown;
  // A step that was chosen elsewhere, or by its address, comes into view.
  const isKnown = chosen !== undefined && rows.some(({ step }) => step.key === chosen);
  useEffect(() => {
    const list = frame.current;
    if (!list || !isKnown) return;
    const top = ROW_PX * rows.findIndex(({ step }) => step.key === chosen);
    if (top < list.scrollTop || top >= list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  }, [chosen, isKnown]);
  const height = `min(65vh, ${rows.length * ROW_PX}px)`;
  return (
    <ul class="rows" ref={frame} style={{ height }} aria-label="Steps">
      <li aria-hidden="true" style={{ height: `${shown.from * ROW_PX}px` }} />
      {rows.slice(shown.from, shown.to).map((row) => (
        <Row key={row.step.key} {...{ row, scale, to, onChoose }} isChosen={row.step.key === chosen} />
      ))}
      <li aria-hidden="true" style={{ height: `${(rows.length - shown.to) * ROW_PX}px` }} />
    </ul>
  );
}

function Scale({ scale }: { readonly scale: TimeScale }) {
  return (
    <div class="scale" aria-hidden="true">
      <span />
      <div>
        {scale.pieces.map(({ from, to, left, right, isFolded }) => (
          <span
            key={from}
            class={isFolded ? 'fold-piece' : 'piece'}
            style={{ left: percent(left), width: percent(right - left) }}
            title={isFolded ? `nothing worked for ${formatDuration(to - from)}` : formatDuration(to - from)}
          >
            {formatDuration(to - from)}
          </span>
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  readonly row: StepRow;
  readonly scale: TimeScale;
  readonly to: number;
  readonly isChosen: boolean;
  onChoose(key: string): void;
}

function Row({ row: { step, depth }, scale, to, isChosen, onChoose }: RowProps) {
  const { key, kind, name, status, startedAt, attempts } = step;
  const duration = durationOf(step, to);
  const left = scale.at(startedAt);
  const right = scale.at(startedAt + duration);
  const pass = passOf(key);
  const notes = [pass, attempts > 1 && `${attempts} attempts`].filter(Boolean).join(', ');
  return (
    <li>
      <button
        type="button"
        class={`step ${isChosen ? 'chosen' : ''}`}
        style={{ height: `${ROW_PX}px` }}
        data-row
        onClick={() => onChoose(key)}
      >
        <span class="step-name" style={{ paddingLeft: `${10 + Math.min(depth, MAX_INDENT) * 14}px` }}>
          <i class={`dot ${toneOf(status)}`} />
          <span class="kind">{kind}</span> {oneLine(name, 60)} <span class="unseen">{status}</span>{' '}
          <span class="hint">{notes}</span>
        </span>
        <span class="bars">
          <i
            class={`span ${toneOf(status)}`}
            style={{ left: percent(left), width: percent(Math.max(0, right - left)) }}
          />
          <span class="took" style={right < SPLIT ? { left: percent(right) } : { right: percent(1 - left) }}>
            {status === 'skipped' ? 'skipped' : formatDuration(duration)}
          </span>
        </span>
      </button>
    </li>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}

/** Of a long list, only the rows in view are drawn. */
interface ListWindow {
  readonly frame: RefObject<HTMLUListElement | null>;
  /** The first row that is drawn, and the first one that is not. */
  readonly from: number;
  readonly to: number;
}

/** Rows above and below the view that are drawn too. */
const MORE_ROWS = 6;

/** @param height - of a row, in pixels */
function useWindow(rows: number, height: number): ListWindow {
  const frame = useRef<HTMLUListElement>(null);
  const [first, setFirst] = useState(0);
  const [fitting, setFitting] = useState(40);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const read = () => {
      // In steps, so that not every pixel draws.
      setFirst(Math.floor(element.scrollTop / height / MORE_ROWS) * MORE_ROWS);
      setFitting(Math.ceil(element.clientHeight / height));
    };
    element.addEventListener('scroll', read, { passive: true });
    const resized = new ResizeObserver(read);
    resized.observe(element);
    return () => {
      element.removeEventListener('scroll', read);
      resized.disconnect();
    };
  }, [height]);
  return { frame, from: Math.max(0, first - MORE_ROWS), to: Math.min(rows, first + fitting + 2 * MORE_ROWS) };
}
