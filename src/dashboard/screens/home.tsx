/** The first screen: what is wrong now, then what runs. */

import type { ComponentChildren } from 'preact';
import { OPEN_STATUSES } from '../../engine/execution/execution.ts';
import type { OpenExecutions } from '../../orchestrator/runs/stats.ts';
import { linkTo, type QueryChanges } from '../address.ts';
import type { Client, Query } from '../api/client.ts';
import { type Data, useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { formatDistance, formatNumber } from '../format.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { Causes } from './causes.tsx';
import { type ExecutionPage, ExecutionTable } from './executions.tsx';
import { FailingReceivers } from './failing-receivers.tsx';

const EVERY_MS = 15_000;
const SHOWN = 8;
const NEWEST_RUNNING = 100;
/** Counts end here. */
const MAX_OPEN = 10_000;
/** A tick that is due for longer than this is late, ms. */
const LATE_MS = 60_000;

export function Home() {
  const { can } = useApp();
  const open = useOpen(can('read:executions'));
  return (
    <>
      <h1>What is wrong now</h1>
      <Store />
      {can('read:executions') && <Causes />}
      {open && <Unresolved count={open.unresolved.count} />}
      {can('read:executions') && <TakenOver />}
      {can('read:ensembles') && <LateSchedules />}
      {can('read:executions') && <FailingReceivers none={<Fine>Every receiver takes its deliveries.</Fine>} />}
      {can('read:executions') && <Now open={open} />}
      {!can('read:executions') && <p class="empty">More is shown to a caller with the scope read:executions.</p>}
    </>
  );
}

/** Reads a page of executions again and again. */
function useExecutions(name: string, query: Query): Data<ExecutionPage> {
  return useData(
    name,
    (client: Client, signal) =>
      client.call('GET /executions', { query: { limit: SHOWN, values: 'false', ...query } }, signal),
    EVERY_MS,
  );
}

function Store() {
  const { value, problem, reload } = useData(
    'health',
    (client, signal) => client.call('GET /health', {}, signal),
    EVERY_MS,
  );
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  return value ? <Fine>The service answers, and its store works.</Fine> : null;
}

function Fine({ children }: { readonly children: ComponentChildren }) {
  return (
    <p class="fine">
      <i class="dot good" /> {children}
    </p>
  );
}

/** How many failed or timed out in all and were not retried. */
function Unresolved({ count: all }: { readonly count: number }) {
  if (all === 0) return <Fine>No execution failed without a retry.</Fine>;
  return (
    <p>
      <i class="dot bad" /> <a href={linkTo(['executions'], { unresolved: 'true' })}>{countOf(all)}</a> failed or timed
      out in all, and {all === 1 ? 'was' : 'were'} not retried.
    </p>
  );
}

/** The counts of what is open, after a read that succeeded. */
function useOpen(isAllowed: boolean): OpenExecutions | undefined {
  const { value, problem } = useData(
    isAllowed ? 'open' : undefined,
    (client, signal) => client.call('GET /open', {}, signal),
    EVERY_MS,
  );
  return problem ? undefined : value;
}

/** @param number - counted to 10,000 */
function countOf(number: number): string {
  return number < MAX_OPEN ? formatNumber(number) : `${formatNumber(MAX_OPEN)} or more`;
}

interface GroupProps {
  readonly title: string;
  readonly none: string;
  readonly page: ExecutionPage;
  readonly query: QueryChanges;
}

/** @returns one line if there is nothing */
function Group({ title, none, page: { executions, nextCursor }, query }: GroupProps) {
  if (executions.length === 0) return <Fine>{none}</Fine>;
  return (
    <section>
      <h2>
        {title} <span class="hint">{nextCursor ? `more than ${SHOWN}` : executions.length}</span>
      </h2>
      <ExecutionTable executions={executions} query={query} />
      {nextCursor && <a href={linkTo(['executions'], query)}>All of them</a>}
    </section>
  );
}

/** Executions whose process was lost, which run or wait again. */
function TakenOver() {
  const { value } = useExecutions('running', { status: 'running', limit: NEWEST_RUNNING });
  const recovered = value?.executions.filter(({ recoveries }) => recoveries > 0) ?? [];
  if (recovered.length === 0) return null;
  return (
    <section>
      <h2>
        Continued after the loss of a process{' '}
        <span class="hint">
          {recovered.length}
          {value?.nextCursor && ` of the newest ${NEWEST_RUNNING} that run`}
        </span>
      </h2>
      <ExecutionTable executions={recovered} />
    </section>
  );
}

function LateSchedules() {
  const { value, problem } = useData(
    'schedules',
    (client, signal) => client.all('GET /schedules', 'schedules', {}, signal),
    EVERY_MS,
  );
  if (problem) return null;
  if (!value) return null;
  const late = value.filter(({ next: [first] }) => first !== undefined && first < Date.now() - LATE_MS);
  const failed = value.filter(({ last }) => last?.status === 'failed' || last?.status === 'timed_out');
  if (late.length + failed.length === 0)
    return <Fine>{value.length === 0 ? 'There are no schedules.' : 'No schedule is late.'}</Fine>;
  return (
    <section>
      <h2>Schedules</h2>
      <ul class="lines">
        {late.map(({ id, ensemble, next: [due = 0] }) => (
          <li key={id}>
            <i class="dot bad" /> <a href={linkTo(['schedules'])}>{ensemble}</a> is late: it was due{' '}
            {formatDistance(due)}. Does a process run that has its definition?
          </li>
        ))}
        {failed.map(({ id, ensemble, last }) => (
          <li key={id}>
            <i class="dot bad" /> The last execution of <a href={linkTo(['schedules'])}>{ensemble}</a> failed:{' '}
            <a href={linkTo(['executions', last?.executionId ?? ''])}>{last?.executionId}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Now({ open }: { readonly open: OpenExecutions | undefined }) {
  const running = useExecutions('running now', { status: 'running' });
  const queued = useExecutions('queued', { status: 'queued' });
  const waiting = useExecutions('waiting', { status: 'waiting' });
  const groups = [
    ['Running', 'running', running, 'Nothing runs at the moment.'],
    ['Queued', 'queued', queued, 'Nothing waits for a free process.'],
    ['Waiting', 'waiting', waiting, 'Nothing waits for a signal or an instant.'],
  ] as const;
  return (
    <>
      <h1>What happens now</h1>
      {open && <Open counts={open} />}
      {groups.map(
        ([title, status, { value, problem }, none]) =>
          value && !problem && <Group key={status} title={title} none={none} page={value} query={{ status }} />,
      )}
    </>
  );
}

function Open({ counts }: { readonly counts: OpenExecutions }) {
  return (
    <dl class="facts row">
      <Fact name="Started in the last hour">{countOf(counts.lastHour)}</Fact>
      {OPEN_STATUSES.map((status) => {
        const { count: number, oldestAt } = counts[status];
        return (
          <Fact key={status} name={status}>
            <a href={linkTo(['executions'], { status })}>{countOf(number)}</a>{' '}
            {oldestAt !== undefined && (
              <span class="hint">
                the oldest is from <Instant at={oldestAt} />
              </span>
            )}
          </Fact>
        );
      })}
    </dl>
  );
}
