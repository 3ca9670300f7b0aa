/** Cancels or retries all executions that match a filter, as a job that continues on the server, and shows what failed. */

import { useState } from 'preact/hooks';
import type { JobAction } from '../../engine/execution/execution.ts';
import { linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { count, formatNumber, oneLine, visible } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { FilterText } from '../parts/filters.tsx';
import { Instant } from '../parts/instant.tsx';

export interface NewJob {
  readonly action: JobAction;
  readonly filter: Readonly<Record<string, unknown>>;
  /** How many executions match it, such as `50 or more`. */
  readonly matching: string | undefined;
}

interface JobDialogProps extends NewJob {
  onClose(): void;
}

const EVERY_MS = 1_000;
const WORDS: Readonly<Record<JobAction, { readonly title: string; readonly what: string; readonly done: string }>> = {
  cancel: { title: 'Cancel executions', what: 'Executions that have ended stay as they are.', done: 'cancelled' },
  retry: { title: 'Retry executions', what: 'Those that completed or still run stay as they are.', done: 'retried' },
  move: {
    title: 'Move executions',
    what: 'Those whose records do not replay in the latest definition stay as they are.',
    done: 'moved',
  },
  pause: { title: 'Pause executions', what: 'Those that run are paused after their current steps.', done: 'paused' },
  resume: { title: 'Resume executions', what: 'Those that are not paused stay as they are.', done: 'resumed' },
  complete: { title: 'Complete steps', what: 'Those whose step has a result stay as they are.', done: 'completed' },
  delete: { title: 'Delete executions', what: 'Executions that have not ended stay.', done: 'deleted' },
};

export function JobDialog({ action, filter, matching, onClose }: JobDialogProps) {
  const { client } = useApp();
  const [id, setId] = useState<string>();
  const { title, what } = WORDS[action];
  if (id !== undefined) return <JobProgress id={id} onClose={onClose} />;
  const start = async () =>
    setId(
      (await client.call('POST /jobs', { body: { action, filter, ...(action === 'move' && { to: 'latest' }) } })).id,
    );
  return (
    <Confirm
      title={title}
      action={`${title} now`}
      isDanger={action === 'cancel' || action === 'delete'}
      onConfirm={start}
      onDone={() => {}}
      onClose={onClose}
    >
      <FilterText filter={filter} all="all executions" />
      {matching && <p>{matching} match now.</p>}
      <p class="hint">{what} The work continues on the server when you close this page.</p>
    </Confirm>
  );
}

/** The jobs, the newest first, also those of other people. */
export function JobsDialog({ onClose }: Pick<JobDialogProps, 'onClose'>) {
  const [id, setId] = useState<string>();
  const { value, problem } = useData('jobs', (client, signal) => client.all('GET /jobs', 'jobs', {}, signal));
  if (id !== undefined) return <JobProgress id={id} onClose={onClose} />;
  return (
    <Dialog title="Jobs of the last 7 days" onClose={onClose}>
      {problem && <Failure problem={problem} />}
      {value?.length === 0 && (
        <p class="empty">There is none. Cancel or retry all executions that match a filter to create one.</p>
      )}
      <ul class="lines">
        {value?.map((job) => (
          <li key={job.id}>
            <button type="button" class="quiet" onClick={() => setId(job.id)}>
              {WORDS[job.action].title}
            </button>{' '}
            <Badge status={job.status} /> {formatNumber(job.changed)} {WORDS[job.action].done},{' '}
            {formatNumber(job.failed)} failed <Instant at={job.createdAt} />{' '}
            {job.by && <span class="hint">by {oneLine(job.by.name, 40)}</span>}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function JobProgress({ id, onClose }: { readonly id: string; onClose(): void }) {
  const { client } = useApp();
  const [isOver, setOver] = useState(false);
  const { value: job, problem } = useData(
    id,
    async (api, signal) => {
      const found = await api.call('GET /jobs/:id', { id }, signal);
      if (found.status !== 'running') setOver(true);
      return found;
    },
    isOver ? undefined : EVERY_MS,
  );
  return (
    <Dialog title={job ? WORDS[job.action].title : 'Job'} onClose={onClose}>
      {problem && <Failure problem={problem} />}
      {job && (
        <>
          <p>
            <Badge status={job.status} /> {count(job.changed, 'execution')} {WORDS[job.action].done}, {job.unchanged}{' '}
            left as they are, {job.failed} failed.
          </p>
          <FilterText filter={job.filter} all="all executions" />
          {job.action === 'retry' && job.changed > 0 && (
            <p>
              <a href={linkTo(['executions'], { since: new Date(job.createdAt).toISOString() })}>
                Executions since then
              </a>{' '}
              show how the retries ended.
            </p>
          )}
          {job.error && <p class="failure">{visible(job.error.message)}</p>}
          <ul class="lines">
            {job.failures.map(({ executionId, code, message }) => (
              <li key={executionId}>
                <a href={linkTo(['executions', executionId])}>{executionId}</a> <strong>{code}</strong>{' '}
                {visible(message)}
              </li>
            ))}
          </ul>
          {job.status === 'running' && (
            <button type="button" onClick={() => client.call('POST /jobs/:id/stop', { id }).catch(() => {})}>
              Stop the job
            </button>
          )}
        </>
      )}
    </Dialog>
  );
}
