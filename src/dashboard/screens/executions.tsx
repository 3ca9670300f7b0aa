/** The list of executions: filters and page are in the address, and new executions appear by themselves. */

import { useState } from 'preact/hooks';
import { EXECUTION_STATUSES, type Execution } from '../../engine/model/execution.ts';
import type { JobAction } from '../../orchestrator/jobs/jobs.ts';
import { type Address, linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { formatDuration, oneLine, TIME_ZONE } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { Failure } from '../parts/failure.tsx';
import { ChoiceFilter, EnsembleFilter, setFilter, TextFilter } from '../parts/filters.tsx';
import { Instant } from '../parts/instant.tsx';
import { Pager } from '../parts/pager.tsx';
import { Table } from '../parts/table.tsx';
import { JobDialog, JobsDialog } from './job-dialog.tsx';

/** How often the first page is read again, in ms. Other pages don't change. */
const EVERY_MS = 5_000;
const PAGE_SIZE = 50;

const FILTERS = ['ensemble', 'status', 'tag', 'search', 'since', 'until', 'parentId', 'retryOf', 'errorCode'] as const;
export type ExecutionQuery = { readonly [K in (typeof FILTERS)[number] | 'order' | 'cursor']?: string };

export interface ExecutionPage {
  readonly executions: readonly Execution<unknown>[];
  readonly nextCursor?: string;
}

export function Executions({ query }: { readonly query: Address['query'] }) {
  const given: ExecutionQuery = query;
  const [action, setAction] = useState<JobAction>();
  const [showsJobs, setShowsJobs] = useState(false);
  const { can, client } = useApp();
  const isLive = given.cursor === undefined;
  const { value, problem, isLoading, reload } = useData(
    JSON.stringify(['executions', given]),
    (api, signal) => api.get<ExecutionPage>('/executions', { ...pageOf(given), limit: PAGE_SIZE }, signal),
    isLive ? EVERY_MS : undefined,
  );
  return (
    <>
      <div class="title">
        <h1>Executions</h1>
        <span class="hint">
          {isLive ? `Read every ${formatDuration(Math.max(EVERY_MS, client.pace()))}.` : 'A page of the past.'}
        </span>
        {can('execute:ensembles') && given.retryOf === undefined && (
          <span class="buttons">
            <button type="button" onClick={() => setAction('cancel')}>
              Cancel all that match
            </button>
            <button type="button" onClick={() => setAction('retry')}>
              Retry all that match
            </button>
            <button type="button" onClick={() => setShowsJobs(true)}>
              Jobs
            </button>
          </span>
        )}
      </div>
      <Filters query={query} />
      {problem && <Failure problem={problem} onRetry={reload} />}
      {isLoading && <p class="empty">Loading...</p>}
      {value && <ExecutionTable executions={value.executions} isFiltered={Object.keys(filterOf(given)).length > 0} />}
      <Pager path={['executions']} query={given} next={value?.nextCursor} />
      {action && <JobDialog action={action} filter={jobFilterOf(given)} onClose={() => setAction(undefined)} />}
      {showsJobs && <JobsDialog onClose={() => setShowsJobs(false)} />}
    </>
  );
}

function filterOf(query: ExecutionQuery, keys: readonly (keyof ExecutionQuery)[] = FILTERS): Record<string, string> {
  return Object.fromEntries(keys.flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
}

function pageOf(query: ExecutionQuery): Record<string, string> {
  return filterOf(query, [...FILTERS, 'order', 'cursor']);
}

/** A job takes no single execution and no page. */
function jobFilterOf(query: ExecutionQuery): Record<string, unknown> {
  const { retryOf: _one, since, until, ...filter } = filterOf(query);
  return { ...filter, ...(since && { since: Date.parse(since) }), ...(until && { until: Date.parse(until) }) };
}

function Filters({ query }: { readonly query: Address['query'] }) {
  const others = (['parentId', 'retryOf'] as const).filter((key) => query[key] !== undefined);
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <TextFilter query={query} name="search" label="Id or tag begins with" isFirst />
      <EnsembleFilter query={query} />
      <ChoiceFilter query={query} name="status" label="Status" choices={EXECUTION_STATUSES} />
      <TextFilter query={query} name="tag" label="Tag" />
      <TextFilter query={query} name="errorCode" label="Error code" />
      <InstantFilter query={query} name="since" label="From" />
      <InstantFilter query={query} name="until" label="Before" />
      <ChoiceFilter query={query} name="order" label="Order" choices={['oldest']} none="newest" />
      {others.map((key) => (
        <button key={key} type="button" class="chip" onClick={() => setFilter(key, undefined)}>
          {key === 'parentId' ? 'children of' : 'retry of'} {query[key]} ×
        </button>
      ))}
    </form>
  );
}

interface InstantProps {
  readonly query: Address['query'];
  readonly name: 'since' | 'until';
  readonly label: string;
}

function InstantFilter({ query, name, label }: InstantProps) {
  const set = (value: string) => setFilter(name, value && new Date(value).toISOString());
  return (
    <label>
      {label} <span class="hint">{TIME_ZONE}</span>
      <input
        type="datetime-local"
        value={toLocal(query[name])}
        onChange={({ currentTarget }) => set(currentTarget.value)}
      />
    </label>
  );
}

/** An instant as the field of a date and a time takes it. */
function toLocal(iso: string | undefined): string {
  const date = new Date(iso ?? '');
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

interface TableProps {
  readonly executions: readonly Execution<unknown>[];
  readonly isFiltered?: boolean;
}

export function ExecutionTable({ executions, isFiltered = false }: TableProps) {
  if (executions.length === 0)
    return (
      <p class="empty">
        {isFiltered
          ? 'No execution matches. Remove a filter to see more.'
          : 'Nothing has run yet. Start an ensemble: from your code, over HTTP, or on its page here.'}
      </p>
    );
  return (
    <Table heads={['Execution', 'Status', 'Ensemble', 'Created', 'Duration', 'What happened']}>
      {executions.map((execution) => (
        <ExecutionRow key={execution.id} execution={execution} />
      ))}
    </Table>
  );
}

function ExecutionRow({ execution }: { readonly execution: Execution<unknown> }) {
  const { id, status, ensemble, createdAt, duration, tags, error, waitingFor } = execution;
  const [wait] = waitingFor;
  return (
    <tr>
      <td>
        <a data-row href={linkTo(['executions', id])} class="mono">
          {id}
        </a>
        {tags.map((tag) => (
          <span key={tag} class="tag">
            {oneLine(tag, 40)}
          </span>
        ))}
      </td>
      <td>
        <Badge status={status} />
      </td>
      <td>{ensemble}</td>
      <td>
        <Instant at={createdAt} />
      </td>
      <td class="number">{duration === undefined ? '' : formatDuration(duration)}</td>
      <td class="clip">
        {error && (
          <>
            <a href={linkTo(['executions'], { errorCode: error.code })}>{error.code}</a> {oneLine(error.message, 120)}
          </>
        )}
        {!error && wait && `waits for ${wait.kind === 'sleep' ? 'an instant' : oneLine(wait.name ?? wait.kind, 60)}`}
      </td>
    </tr>
  );
}
