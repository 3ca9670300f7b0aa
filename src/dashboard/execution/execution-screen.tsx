/** One execution: why it failed first, then what it waits for, its steps over time or in its flow, and its values. */

import { useEffect, useState } from 'preact/hooks';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import { type ExecutionFact, executionFacts } from '../../engine/execution/execution-facts.ts';
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
import { Plan } from './plan.tsx';
import { StepPanel } from './step-panel.tsx';
import { Timeline } from './timeline.tsx';
import { type ShownExecution, useExecution } from './use-execution.ts';
import { Waits } from './waits.tsx';

const TABS = ['time', 'flow', 'values', 'children', 'deliveries'] as const;
/** Those of a dry run. */
const DRY_TABS = ['plan', 'values'] as const;
type Tab = (typeof TABS)[number] | (typeof DRY_TABS)[number];
const TITLES: Readonly<Record<Tab, string>> = {
  plan: 'Plan',
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
  const tabs: readonly Tab[] = execution?.plan ? DRY_TABS : TABS;
  const tab = tabs.find((one) => one === query.tab) ?? (tabs[0] as Tab);
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
        {tabs.map((one) => (
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
  const { id, ensemble, status } = execution;
  return (
    <>
      <div class="title">
        <h1 class="mono">{id}</h1>
        <Badge status={status} />
        {execution.dryRun && <span class="tag">dry run</span>}
        <Link connection={shown.connection} />
        <Actions execution={execution} onChange={shown.reload} />
      </div>
      <dl class="facts row">
        <Fact name="Ensemble">
          <a href={linkTo(['ensembles', ensemble])}>{ensemble}</a>
        </Fact>
        <Fact name="Steps">{formatNumber(shown.steps.length)}</Fact>
        {executionFacts(execution).map((fact) => (
          <Fact key={`${fact.name} ${fact.value}`} name={titleOf(fact.name)}>
            <FactValue {...fact} />
          </Fact>
        ))}
      </dl>
    </>
  );
}

const FACT_TITLES: Readonly<Record<string, string>> = {
  ...{ trigger: 'Started by', duration: 'Took', waited: 'Of that waited', recovered: 'Taken over' },
};

function titleOf(name: string): string {
  return FACT_TITLES[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

function FactValue({ name, kind, value }: ExecutionFact) {
  if (kind === 'instant') return <Instant at={value} exact />;
  if (kind === 'duration') return <>{formatDuration(value)}</>;
  if (kind === 'times') return <>{count(value, 'time')}</>;
  if (kind === 'execution') return <a href={linkTo(['executions', value])}>{value}</a>;
  return <>{name === 'version' ? value.slice(0, 8) : oneLine(value, 240)}</>;
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
  if (tab === 'plan') return <Plan steps={execution.plan ?? []} />;
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
