/** The list of executions: filters and page are in the address, and new executions appear by themselves. */

import { useState } from 'preact/hooks';
import {
  EXECUTION_FILTERS,
  EXECUTION_STATUSES,
  type Execution,
  type JobAction,
} from '../../engine/execution/execution.ts';
import { type Address, linkTo, type QueryChanges } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { formatDuration, oneLine, TIME_ZONE } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { Failure } from '../parts/failure.tsx';
import { ChoiceFilter, EnsembleFilter, filterOf, setFilter, TextFilter } from '../parts/filters.tsx';
import { Instant } from '../parts/instant.tsx';
import { Pager } from '../parts/pager.tsx';
import { RowLink } from '../parts/row-link.tsx';
import { Table } from '../parts/table.tsx';
import { JobDialog, JobsDialog, type NewJob } from './job-dialog.tsx';

/** How often the first page is read again, in ms. Other pages don't change. */
const EVERY_MS = 5_000;
const PAGE_SIZE = 50;

const PAGE_KEYS = [...EXECUTION_FILTERS, 'order', 'cursor'];

export interface ExecutionPage {
  readonly executions: readonly Execution<unknown>[];
  readonly nextCursor?: string;
}

export function Executions({ query }: { readonly query: Address['query'] }) {
  const given = filterOf(query, PAGE_KEYS);
  const [asked, setAsked] = useState<NewJob>();
  const [showsJobs, setShowsJobs] = useState(false);
  const { can, client } = useApp();
  const isLive = given.cursor === undefined;
  const { value, problem, isLoading, reload } = useData(
    JSON.stringify(['executions', given]),
    (api, signal) => api.call('GET /executions', { query: { ...given, values: 'false', limit: PAGE_SIZE } }, signal),
    isLive ? EVERY_MS : undefined,
  );
  // The list may show other executions while the question is open, for example after Back.
  const ask = (action: JobAction) => {
    const matching = isLive && value ? `${value.executions.length}${value.nextCursor ? ' or more' : ''}` : undefined;
    setAsked({ action, filter: jobFilterOf(query), matching });
  };
  const codes = new Set(value?.executions.flatMap(({ error }) => error?.code ?? []));
  return (
    <>
      <div class="title">
        <h1>Executions</h1>
        <span class="hint">
          {isLive ? `Read every ${formatDuration(Math.max(EVERY_MS, client.pace()))}.` : 'A page of the past.'}
        </span>
        <span class="buttons">
          {can('execute:ensembles') && given.retryOf === undefined && (
            <>
              <button type="button" onClick={() => ask('cancel')}>
                Cancel all that match
              </button>
              <button type="button" onClick={() => ask('retry')}>
                Retry all that match
              </button>
              <button type="button" onClick={() => ask('move')}>
                Move all that match
              </button>
              <button type="button" onClick={() => ask(given.status === 'paused' ? 'resume' : 'pause')}>
                {given.status === 'paused' ? 'Resume' : 'Pause'} all that match
              </button>
            </>
          )}
          <button type="button" onClick={() => setShowsJobs(true)}>
            Jobs
          </button>
        </span>
      </div>
      <Filters query={query} codes={[...codes].sort()} />
      {problem && <Failure problem={problem} onRetry={reload} />}
      {isLoading && <p class="empty">Loading...</p>}
      {value && <ExecutionTable executions={value.executions} query={filterOf(query, EXECUTION_FILTERS)} />}
      <Pager path={['executions']} query={given} next={value?.nextCursor} />
      {asked && <JobDialog {...asked} onClose={() => setAsked(undefined)} />}
      {showsJobs && <JobsDialog onClose={() => setShowsJobs(false)} />}
    </>
  );
}

/** A job takes no single execution and no page. */
function jobFilterOf(query: Address['query']): Record<string, unknown> {
  const { retryOf: _one, since, until, unresolved, ...filter } = filterOf(query, EXECUTION_FILTERS);
  const isUnresolved = unresolved === 'true';
  return {
    ...filter,
    ...(isUnresolved && { unresolved: true }),
    ...(since && { since: Date.parse(since) }),
    ...(until && { until: Date.parse(until) }),
  };
}

interface FiltersProps {
  readonly query: Address['query'];
  /** The codes of errors that the list shows. */
  readonly codes: readonly string[];
}

function Filters({ query, codes }: FiltersProps) {
  const others = (['unresolved', 'parentId', 'retryOf'] as const).filter((key) => query[key] !== undefined);
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <TextFilter query={query} name="search" label="Id or tag begins with" isFirst />
      <EnsembleFilter query={query} />
      <ChoiceFilter query={query} name="status" label="Status" choices={EXECUTION_STATUSES} />
      <TextFilter query={query} name="tag" label="Tag" />
      <TextFilter query={query} name="errorCode" label="Error code" suggestions={codes} />
      <InstantFilter query={query} name="since" label="From" />
      <InstantFilter query={query} name="until" label="Before" />
      <ChoiceFilter query={query} name="order" label="Order" choices={['oldest']} none="newest" />
      {others.map((key) => (
        <button key={key} type="button" class="chip" onClick={() => setFilter(key, undefined)}>
          {key === 'unresolved'
            ? 'failed and not retried'
            : `${key === 'parentId' ? 'children' : 'retry'} of ${query[key]}`}{' '}
          ×
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
  /** The filter of the list. The links in it add to the filter. */
  readonly query?: QueryChanges;
}

export function ExecutionTable({ executions, query = {} }: TableProps) {
  if (executions.length === 0)
    return (
      <p class="empty">
        {Object.keys(query).length > 0
          ? 'No execution matches. Remove a filter to see more.'
          : 'Nothing has run yet. Start an ensemble: from your code, over HTTP, or on its page here.'}
      </p>
    );
  return (
    <Table heads={['Execution', 'Status', 'Ensemble', 'Created', 'Duration', 'What happened']}>
      {executions.map((execution) => (
        <ExecutionRow key={execution.id} execution={execution} query={query} />
      ))}
    </Table>
  );
}

function ExecutionRow({ execution, query }: { readonly execution: Execution<unknown>; readonly query: QueryChanges }) {
  const { id, status, ensemble, createdAt, duration, tags, error, waitingFor, retriedBy } = execution;
  const [wait] = waitingFor;
  return (
    <tr>
      <td>
        <RowLink path={['executions', id]} isCode>
          {id}
        </RowLink>
        {tags.map((tag) => (
          <a key={tag} class="tag" href={linkTo(['executions'], { ...query, tag })}>
            {oneLine(tag, 40)}
          </a>
        ))}
      </td>
      <td>
        <Badge status={status} />
        {execution.dryRun && <span class="tag">dry run</span>}
      </td>
      <td>
        <a href={linkTo(['executions'], { ...query, ensemble })}>{ensemble}</a>
      </td>
      <td>
        <Instant at={createdAt} />
      </td>
      <td class="number">{duration === undefined ? '' : formatDuration(duration)}</td>
      <td class="clip">
        {error && (
          <>
            <a href={linkTo(['executions'], { ...query, errorCode: error.code })}>{error.code}</a>{' '}
            {oneLine(error.message, 120)}
            {retriedBy && (
              <>
                {' '}
                <a href={linkTo(['executions', retriedBy])}>retried</a>
              </>
            )}
          </>
        )}
        {!error && wait && `waits for ${wait.kind === 'sleep' ? 'an instant' : oneLine(wait.name ?? wait.kind, 60)}`}
      </td>
    </tr>
  );
}
