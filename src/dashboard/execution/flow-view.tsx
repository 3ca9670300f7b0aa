/** The flow with which an execution began, as nested boxes, with the state of each step. */

import { useMemo } from 'preact/hooks';
import type { EnsembleDefinition, StepDefinition } from '../../engine/ensemble/ensemble.ts';
import type { ExecutionStep, StepStatus } from '../../engine/ensemble/execution-step.ts';
import { expressionText, placedLists, placeOf, titleOf, verbOf } from '../../engine/ensemble/flow-places.ts';
import { formatNumber, oneLine } from '../format.ts';
import { toneOf } from '../parts/badge.tsx';

interface FlowProps {
  readonly definition: EnsembleDefinition;
  /** Absent: only the definition is shown. */
  readonly steps?: readonly ExecutionStep[];
  readonly chosen?: string | undefined;
  onChoose?(key: string): void;
}

/** Of several runs at one place, the first of these states that one of them has is shown. */
const ORDER: readonly StepStatus[] = [
  ...(['retrying', 'running', 'waiting', 'failed', 'completed', 'cancelled', 'skipped'] as const),
];

interface Place {
  readonly status: StepStatus;
  readonly runs: number;
  readonly completed: number;
  /** The run that is shown when a person chooses the place: the first one in the shown state. */
  readonly key: string;
}

export function FlowView({ definition, steps = [], chosen, onChoose }: FlowProps) {
  const places = useMemo(() => byPlace(steps), [steps]);
  const context: Drawing = { places, chosen: chosen === undefined ? undefined : placeOf(chosen), onChoose };
  return (
    <div class="flow">
      <Boxes list={definition.flow} place="flow" drawing={context} />
    </div>
  );
}

interface Drawing {
  readonly places: ReadonlyMap<string, Place>;
  readonly chosen: string | undefined;
  readonly onChoose: ((key: string) => void) | undefined;
}

function byPlace(steps: readonly ExecutionStep[]): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const { key, status } of steps) {
    const place = placeOf(key);
    const before = places.get(place);
    const isFirst = !before || ORDER.indexOf(status) < ORDER.indexOf(before.status);
    places.set(place, {
      status: isFirst ? status : before.status,
      key: isFirst ? key : before.key,
      runs: (before?.runs ?? 0) + 1,
      completed: (before?.completed ?? 0) + (status === 'completed' ? 1 : 0),
    });
  }
  return places;
}

interface BoxesProps {
  readonly list: readonly StepDefinition[];
  readonly place: string;
  readonly drawing: Drawing;
  readonly isSideBySide?: boolean;
}

function Boxes({ list, place, drawing, isSideBySide = false }: BoxesProps) {
  return (
    <ol class={isSideBySide ? 'boxes side' : 'boxes'}>
      {list.map((step, i) => (
        <Box key={`${place}[${i}]`} step={step} place={`${place}[${i}]`} drawing={drawing} />
      ))}
    </ol>
  );
}

function Box({
  step,
  place,
  drawing,
}: {
  readonly step: StepDefinition;
  readonly place: string;
  readonly drawing: Drawing;
}) {
  const lists = placedLists(step, place);
  const members = 'agent' in step ? (step.routes ?? []).flatMap(({ member }) => member ?? []) : [];
  return (
    <li class="box">
      <Head title={titleOf(step)} step={step} place={place} drawing={drawing} />
      {members.map((member) => (
        <Head key={member} title={member} place={`${place}.${member}`} drawing={drawing} />
      ))}
      {lists.length > 0 && (
        <div class={verbOf(step) === 'if' || verbOf(step) === 'switch' ? 'lists side' : 'lists'}>
          {lists.map(({ label, part, place: inner, steps }) => (
            <div key={inner} class="list">
              {label !== '' && <span class="label">{oneLine(label, 40)}</span>}
              <Boxes list={steps} place={inner} drawing={drawing} isSideBySide={part === 'parallel'} />
            </div>
          ))}
        </div>
      )}
    </li>
  );
}

interface HeadProps {
  readonly title: string;
  readonly step?: StepDefinition;
  readonly place: string;
  readonly drawing: Drawing;
}

function Head({ title, step, place, drawing: { places, chosen, onChoose } }: HeadProps) {
  const state = places.get(place);
  const { operation, condition } = (step ?? {}) as { readonly operation?: string; readonly condition?: unknown };
  const runs = state && state.runs > 1 ? `${formatNumber(state.completed)} of ${formatNumber(state.runs)}` : '';
  const text = (
    <>
      <i class={`dot ${state ? toneOf(state.status) : 'none'}`} />
      <span class="box-title">{oneLine(title, 80)}</span>
      {state && <span class="unseen">{state.status}</span>}
      <span class="hint">
        {[operation, condition !== undefined && `only if ${oneLine(expressionText(condition), 60)}`, runs]
          .filter(Boolean)
          .join(' · ')}
      </span>
    </>
  );
  if (!state || !onChoose) return <div class="box-head">{text}</div>;
  return (
    <button type="button" class={`box-head ${chosen === place ? 'chosen' : ''}`} onClick={() => onChoose(state.key)}>
      {text}
    </button>
  );
}
