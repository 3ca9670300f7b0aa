/** One step: its state, its attempts, its error, its output, and the calls of models and tools in it. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import { linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { formatDuration, formatNumber, oneLine, visible } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { Value } from '../parts/value-tree.tsx';
import { CompleteDialog, RetryDialog } from './actions.tsx';
import { ErrorOf } from './error-of.tsx';
import { containerOf } from './step-tree.ts';
import { durationOf, isOpen } from './use-execution.ts';

interface StepPanelProps {
  readonly execution: Execution<unknown>;
  readonly step: ExecutionStep;
  readonly steps: readonly ExecutionStep[];
  /** Unix ms. */
  readonly now: number;
  /** Whether a person came here from elsewhere on the page. */
  readonly hasFocus: boolean;
  onChoose(key: string | undefined): void;
}

const HAS_RESULT: ReadonlySet<string> = new Set(['completed', 'skipped']);

function StepActions({ execution, step: { key, kind, status } }: Pick<StepPanelProps, 'execution' | 'step'>) {
  const { can } = useApp();
  const [asks, setAsks] = useState<'retry' | 'complete'>();
  const { id, finishedAt, retriedBy, dryRun } = execution;
  if (!can('execute:ensembles') || dryRun || retriedBy !== undefined || PARTS.has(kind)) return null;
  const isFree = finishedAt === undefined ? execution.status !== 'running' : execution.status !== 'completed';
  const close = () => setAsks(undefined);
  return (
    <span class="buttons">
      {finishedAt !== undefined && (
        <button type="button" onClick={() => setAsks('retry')}>
          Run again from here
        </button>
      )}
      {isFree && (kind === 'agent' || kind === 'ensemble') && !HAS_RESULT.has(status) && (
        <button type="button" onClick={() => setAsks('complete')}>
          Give it a result
        </button>
      )}
      {asks === 'retry' && <RetryDialog execution={execution} from={key} onClose={close} />}
      {asks === 'complete' && <CompleteDialog id={id} step={key} onClose={close} />}
    </span>
  );
}

const PARTS: ReadonlySet<string> = new Set(['model', 'tool', 'send']);

export function StepPanel({ execution, step, steps, now, hasFocus, onChoose }: StepPanelProps) {
  const { key, kind, name, status, attempts, startedAt, error, executionId } = step;
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    if (hasFocus) panel.current?.focus();
  }, [hasFocus]);
  const parts = steps.filter((one) => PARTS.has(one.kind) && containerOf(one.key) === key);
  return (
    <aside class="panel" ref={panel} tabIndex={-1} aria-label={`Step ${name || kind}`}>
      <div class="title">
        <h2>{oneLine(name || kind, 60)}</h2>
        <Badge status={status} />
        <button type="button" class="quiet close" aria-label="Close the step" onClick={() => onChoose(undefined)}>
          ×
        </button>
      </div>
      <StepActions execution={execution} step={step} />
      <dl class="facts">
        <Fact name="Kind">{kind}</Fact>
        <Fact name="Place">
          <code>{key}</code>
        </Fact>
        <Fact name="Began">
          <Instant at={startedAt} exact />
        </Fact>
        <Fact name={isOpen(step) ? 'So far' : 'Took'}>{formatDuration(durationOf(step, now))}</Fact>
        {attempts > 1 && <Fact name="Attempts">{attempts}</Fact>}
        {executionId && (
          <Fact name="Child">
            <a href={linkTo(['executions', executionId])}>{executionId}</a>
          </Fact>
        )}
      </dl>
      {error && <ErrorOf error={error} />}
      {parts.length > 0 && <Parts parts={parts} onChoose={onChoose} />}
      {kind === 'agent' && status !== 'skipped' && <Input id={execution.id} name={key} />}
      <h3>Output</h3>
      <Output execution={execution} step={step} />
    </aside>
  );
}

/** The input is not stored: the server evaluates it again. @param name - the key of the step */
function Input({ id, name }: { readonly id: string; readonly name: string }) {
  const { value, problem, isLoading, reload } = useData(`input ${id} ${name}`, (client, signal) =>
    client.call('GET /executions/:id/steps/:key/input', { id, key: name }, signal),
  );
  return (
    <>
      <h3>Input</h3>
      {problem && <Failure problem={problem} onRetry={reload} />}
      {isLoading && <p class="empty">Loading...</p>}
      {value?.reason && <p class="hint">It can't be shown: {visible(value.reason)}</p>}
      {value && 'input' in value && <Value value={value.input} label="Input" />}
    </>
  );
}

interface ModelAnswer {
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number; readonly cost?: number };
}

function Parts({ parts, onChoose }: { readonly parts: readonly ExecutionStep[]; onChoose(key: string): void }) {
  return (
    <>
      <h3>Calls</h3>
      <ul class="lines">
        {parts.map(({ key, kind, name, duration, output }) => {
          const { usage } = (output ?? {}) as ModelAnswer;
          return (
            <li key={key}>
              <button type="button" class="quiet" onClick={() => onChoose(key)}>
                {kind} {oneLine(name, 60)}
              </button>{' '}
              <span class="hint">
                {formatDuration(duration)}
                {usage && `, ${formatNumber(usage.inputTokens ?? 0)} + ${formatNumber(usage.outputTokens ?? 0)} tokens`}
                {usage?.cost !== undefined && `, cost ${usage.cost}`}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Output({ execution, step }: Pick<StepPanelProps, 'execution' | 'step'>) {
  const { key, output, outputOmitted } = step;
  const read = outputOmitted ? `${execution.id} ${key}` : undefined;
  const { value, problem, isLoading, reload } = useData(read, (client, signal) =>
    client.call('GET /executions/:id/steps/:key', { id: execution.id, key }, signal),
  );
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (isLoading) return <p class="empty">Loading...</p>;
  if (value) return <Value value={value.output} label="Output" />;
  if (output === undefined) return <p class="hint">{isOpen(step) ? 'There is none yet.' : 'It has none.'}</p>;
  return <Value value={output} label="Output" />;
}
