/** One execution: why it failed first, then what it waits for, its steps over time or in its flow, and its values. */

import { useEffect, useState } from 'preact/hooks';
import type { Execution } from '../../engine/model/execution.ts';
import type { ExecutionStep } from '../../engine/model/execution-step.ts';
import { type Address, changeQuery, linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { count, formatDuration, formatNumber, oneLine } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { Value } from '../parts/value-tree.tsx';
import { DeliveryTable } from '../screens/delivery-table.tsx';
import { ExecutionTable } from '../screens/executions.tsx';
import { Actions } from './actions.tsx';
import { ErrorOf } from './error-of.tsx';
import { FlowView } from './flow-view.tsx';
import { StepPanel } from './step-panel.tsx';
import { Timeline } from './timeline.tsx';
import { type ShownExecution, useExecution } from './use-execution.ts';
import { Waits } from './waits.tsx';

const TABS = ['time', 'flow', 'values', 'children', 'deliveries'] as const;
type Tab = (typeof TABS)[number];
const TITLES: Readonly<Record<Tab, string>> = {
  ...{ time: 'Time line', flow: 'Flow', values: 'Input and output', children: 'Children', deliveries: 'Deliveries' },
};

interface ScreenProps {
  readonly id: string;
  readonly query: Address['query'];
}

export function ExecutionScreen({ id, query }: ScreenProps) {
  const shown = useExecution(id);
  const [jumped, setJump] = useState<string>();
  const { value: execution, problem, isLoading, reload } = shown;
  const tab = TABS.find((one) => one === query.tab) ?? 'time';
  const now = useNow(execution !== undefined && execution.finishedAt === undefined);
  if (!execution)
    return (
      <>
        <h1 class="mono">{id}</h1>
        {isLoading && <p class="empty">Loading...</p>}
        {problem && <Failure problem={problem} onRetry={reload} />}
      </>
    );
  const step = shown.steps.find(({ key }) => key === query.step);
  const culprit = culpritOf(execution, shown.steps);
  const choose = (key: string | undefined) => changeQuery({ step: key }, true);
  const jump = (key: string) => {
    choose(key);
    setJump(key);
  };
  return (
    <>
      <Head execution={execution} shown={shown} />
      {execution.error && <ErrorOf error={execution.error} />}
      {culprit && culprit.key !== query.step && (
        <button type="button" onClick={() => jump(culprit.key)}>
          {culprit.status === 'failed' ? 'Show the step that failed' : 'Show the step that was stopped'}
        </button>
      )}
      <Waits execution={execution} onChange={reload} />
      <nav class="tabs" aria-label="Views">
        {TABS.map((one) => (
          <a
            key={one}
            href={linkTo(['executions', id], { ...query, tab: one })}
            aria-current={one === tab ? 'page' : undefined}
          >
            {TITLES[one]}
          </a>
        ))}
      </nav>
      {shown.stepsProblem && <Failure problem={shown.stepsProblem} />}
      <div class={step ? 'with-panel' : ''}>
        <div class="view">
          <View {...{ tab, shown, execution, now }} chosen={query.step} onChoose={choose} />
        </div>
        {step && (
          <StepPanel
            key={step.key}
            {...{ execution, step, now }}
            steps={shown.steps}
            hasFocus={jumped === step.key}
            onChoose={choose}
          />
        )}
      </div>
    </>
  );
}

/** The step because of which an execution ended as it did: the agent that failed, or the first one that was stopped. */
function culpritOf({ status, error }: Execution<unknown>, steps: readonly ExecutionStep[]): ExecutionStep | undefined {
  const isStopped = status === 'timed_out' || status === 'cancelled';
  return error?.agent === undefined
    ? steps.find((one) => isStopped && one.kind === 'agent' && one.status === 'cancelled')
    : steps.find((one) => one.status === 'failed' && one.name === error.agent);
}

function Head({ execution, shown }: { readonly execution: Execution<unknown>; readonly shown: ShownExecution }) {
  const { id, ensemble, status, trigger, tags, createdAt, duration, metrics, parentId, retryOf, retriedBy } = execution;
  const { usage } = metrics;
  return (
    <>
      <div class="title">
        <h1 class="mono">{id}</h1>
        <Badge status={status} />
        <Link connection={shown.connection} />
        <Actions execution={execution} onChange={shown.reload} />
      </div>
      <dl class="facts row">
        <Fact name="Ensemble">
          <a href={linkTo(['ensembles', ensemble])}>{ensemble}</a>{' '}
          <code class="hint">{execution.version.slice(0, 8)}</code>
        </Fact>
        <Fact name="Started by">{trigger.type}</Fact>
        <Fact name="Created">
          <Instant at={createdAt} exact />
        </Fact>
        {duration !== undefined && <Fact name="Took">{formatDuration(duration)}</Fact>}
        {metrics.waited > 0 && <Fact name="Of that waited">{formatDuration(metrics.waited)}</Fact>}
        <Fact name="Steps">{formatNumber(shown.steps.length)}</Fact>
        {usage && (
          <Fact name="Tokens">
            {formatNumber(usage.inputTokens)} + {formatNumber(usage.outputTokens)}
            {usage.cost !== undefined && `, cost ${usage.cost}`}
          </Fact>
        )}
        {execution.recoveries > 0 && <Fact name="Taken over">{count(execution.recoveries, 'time')}</Fact>}
        {tags.length > 0 && <Fact name="Tags">{tags.map((tag) => oneLine(tag, 60)).join(', ')}</Fact>}
        <Relative name="Parent" id={parentId} />
        <Relative name="Retry of" id={retryOf} />
        <Relative name="Retried by" id={retriedBy} />
        {execution.components?.map(({ kind, name, version, ref }) => (
          <Fact key={`${kind} ${name} ${ref}`} name={kind}>
            {name} {version} <span class="hint">{ref}</span>
          </Fact>
        ))}
      </dl>
    </>
  );
}

function Relative({ name, id }: { readonly name: string; readonly id: string | undefined }) {
  return id === undefined ? null : (
    <Fact name={name}>
      <a href={linkTo(['executions', id])}>{id}</a>
    </Fact>
  );
}

function Link({ connection }: Pick<ShownExecution, 'connection'>) {
  if (connection === undefined || connection === 'ended') return null;
  return (
    <span class="hint" role="status">
      {connection === 'open' ? 'live' : 'The connection is lost. Connecting again...'}
    </span>
  );
}

interface ViewProps {
  readonly tab: Tab;
  readonly shown: ShownExecution;
  readonly execution: Execution<unknown>;
  /** Unix ms. */
  readonly now: number;
  readonly chosen: string | undefined;
  onChoose(key: string): void;
}

function View({ tab, shown: { steps }, execution, now, chosen, onChoose }: ViewProps) {
  const { id, startedAt = execution.createdAt, finishedAt = now } = execution;
  if (tab === 'time') return <Timeline {...{ steps, chosen, onChoose }} from={startedAt} to={finishedAt} />;
  if (tab === 'flow') return <Flow {...{ id, steps, chosen, onChoose }} />;
  if (tab === 'values') return <Values execution={execution} />;
  return tab === 'children' ? <Children id={id} /> : <DeliveryTable query={{ execution: id }} />;
}

/** The present instant, Unix ms. It moves once a second. */
function useNow(moves: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!moves) return;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [moves]);
  return now;
}

type FlowProps = Pick<ViewProps, 'chosen' | 'onChoose'> & Pick<ShownExecution, 'steps'> & { readonly id: string };

function Flow({ id, steps, chosen, onChoose }: FlowProps) {
  const { can } = useApp();
  const mayRead = can('read:ensembles');
  const { value, problem, isLoading } = useData(mayRead ? `definition of ${id}` : undefined, (client, signal) =>
    client.call('GET /executions/:id/definition', { id }, signal),
  );
  if (!mayRead) return <p class="empty">The flow needs the scope read:ensembles.</p>;
  if (problem) return <Failure problem={problem} />;
  if (isLoading || !value) return <p class="empty">Loading...</p>;
  return <FlowView definition={value.definition} steps={steps} chosen={chosen} onChoose={onChoose} />;
}

function Values({ execution: { input, output, partialOutput } }: { readonly execution: Execution<unknown> }) {
  return (
    <>
      <h2>Input</h2>
      <Value value={input} label="Input" />
      <h2>Output</h2>
      {output === undefined ? <p class="hint">It has none.</p> : <Value value={output} label="Output" />}
      {partialOutput !== undefined && (
        <>
          <h2>What could be computed of the output</h2>
          <Value value={partialOutput} label="Partial output" />
        </>
      )}
    </>
  );
}

function Children({ id }: { readonly id: string }) {
  const { value, problem, reload } = useData(`children of ${id}`, (client, signal) =>
    client.call('GET /executions', { query: { parentId: id, values: 'false', limit: 100 } }, signal),
  );
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (!value) return <p class="empty">Loading...</p>;
  if (value.executions.length === 0) return <p class="empty">It has started no other ensemble.</p>;
  return (
    <>
      <ExecutionTable executions={value.executions} />
      {value.nextCursor && <a href={linkTo(['executions'], { parentId: id })}>All of them</a>}
    </>
  );
}
