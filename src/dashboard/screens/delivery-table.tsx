/** Deliveries of notifications: each event for each receiver, with its attempts, and what sends one again. */

import { useState } from 'preact/hooks';
import type { Delivery } from '../../orchestrator/deliveries/deliveries.ts';
import type { Query } from '../api/client.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { count, formatDuration, oneLine } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { Pager } from '../parts/pager.tsx';
import { RowLink } from '../parts/row-link.tsx';
import { Table } from '../parts/table.tsx';

interface TableProps {
  readonly query: Query;
  /** Where the pages of the list are. Absent: only the first page is shown. */
  readonly path?: readonly string[];
  readonly every?: number;
}

export function DeliveryTable({ query, path, every }: TableProps) {
  const { can } = useApp();
  const [again, setAgain] = useState<Delivery>();
  const { value, problem, isLoading, reload } = useData(
    JSON.stringify(['deliveries', query]),
    (client, signal) => client.call('GET /deliveries', { query: { limit: 50, ...query } }, signal),
    every,
  );
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (isLoading || !value) return <p class="empty">Loading...</p>;
  if (value.deliveries.length === 0)
    return <p class="empty">No delivery. An ensemble sends some when it has `notifications`.</p>;
  return (
    <>
      <Table heads={['Execution', 'Status', 'Event', 'To', 'Created', 'Attempts', '']}>
        {value.deliveries.map((delivery) => (
          <Row
            key={delivery.id}
            delivery={delivery}
            onAgain={can('execute:ensembles') ? () => setAgain(delivery) : undefined}
          />
        ))}
      </Table>
      {path && <Pager path={path} query={query as Record<string, string>} next={value.nextCursor} />}
      {again && <Redeliver delivery={again} onDone={reload} onClose={() => setAgain(undefined)} />}
    </>
  );
}

function Row({ delivery, onAgain }: { readonly delivery: Delivery; readonly onAgain: (() => void) | undefined }) {
  const {
    id,
    executionId,
    ensemble,
    event,
    type,
    receiver,
    to = receiver,
    status,
    createdAt,
    attempts,
    nextAttemptAt,
  } = delivery;
  const last = status === 'succeeded' ? undefined : attempts.at(-1);
  return (
    <tr>
      <td>
        <RowLink path={['executions', executionId]} title={id} isCode>
          {ensemble}
        </RowLink>
      </td>
      <td>
        <Badge status={status} />
      </td>
      <td>{event}</td>
      <td class="clip">
        {type} <span class="hint">{oneLine(to, 100)}</span>
      </td>
      <td>
        <Instant at={createdAt} />
      </td>
      <td>
        <details>
          <summary>
            {count(attempts.length, 'attempt')} {oneLine(last?.error ?? '', 60)}
          </summary>
          <ol class="lines">
            {attempts.map((one) => (
              <li key={one.attempt}>
                <Instant at={one.at} exact /> {one.status ?? ''} {oneLine(one.error ?? '', 600)}{' '}
                <span class="hint">{formatDuration(one.duration)}</span>
              </li>
            ))}
          </ol>
          {nextAttemptAt !== undefined && (
            <p class="hint">
              The next one is <Instant at={nextAttemptAt} />.
            </p>
          )}
        </details>
      </td>
      <td>
        {onAgain && status !== 'pending' && (
          <button type="button" class="quiet" onClick={onAgain}>
            Send again
          </button>
        )}
      </td>
    </tr>
  );
}

interface RedeliverProps {
  readonly delivery: Delivery;
  onDone(): void;
  onClose(): void;
}

function Redeliver({ delivery: { id, event }, onDone, onClose }: RedeliverProps) {
  const { client, say } = useApp();
  const send = async () => {
    await client.call('POST /deliveries/:id/redeliver', { id });
    say('It is sent again.');
    onDone();
  };
  return (
    <Confirm title="Send this delivery again" action="Send it" onConfirm={send} onClose={onClose}>
      <p>The receiver gets {event} with the same id and the same body. One that checks ids counts it once.</p>
    </Confirm>
  );
}
