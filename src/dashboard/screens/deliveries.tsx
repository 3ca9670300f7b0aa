/** Deliveries: the receivers that fail, the log with its filters, and what sends many again. */

import { useState } from 'preact/hooks';
import { DELIVERY_STATUSES } from '../../engine/model/delivery.ts';
import type { Receiver, Replay } from '../../orchestrator/deliveries/deliveries.ts';
import { type Address, changeQuery } from '../address.ts';
import { at } from '../api/client.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { count, oneLine, visible } from '../format.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { TextFilter } from '../parts/text-filter.tsx';
import { DeliveryTable } from './delivery-table.tsx';
import { EnsembleNames } from './ensemble-names.tsx';

const EVERY_MS = 10_000;
const FILTERS = ['ensemble', 'execution', 'status', 'url'] as const;

export function Deliveries({ query }: { readonly query: Address['query'] }) {
  const { can, client, say } = useApp();
  const [isReplay, setReplay] = useState(false);
  const filter = Object.fromEntries(FILTERS.flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  const replay = async () => {
    await client.send<Replay>('POST', '/replays', filter);
    say('They are sent again, one after the other.');
  };
  return (
    <>
      <div class="title">
        <h1>Deliveries</h1>
        {can('execute:ensembles') && (
          <span class="buttons">
            <button type="button" onClick={() => setReplay(true)}>
              Send all that match again
            </button>
          </span>
        )}
      </div>
      <Receivers />
      <Filters query={query} />
      <DeliveryTable
        query={{ ...filter, cursor: query.cursor }}
        path={['deliveries']}
        {...(query.cursor === undefined && { every: EVERY_MS })}
      />
      {isReplay && (
        <Confirm title="Send deliveries again" action="Send them" onConfirm={replay} onClose={() => setReplay(false)}>
          <p>
            {Object.keys(filter).length === 0 ? (
              <strong>There is no filter: this is for all deliveries. </strong>
            ) : (
              'All that match: '
            )}
            {Object.entries(filter).map(([key, value]) => (
              <code key={key}>
                {key} {visible(String(value))}{' '}
              </code>
            ))}
          </p>
          <p class="hint">Pending ones stay as they are. Each has the same id and the same body as before.</p>
        </Confirm>
      )}
    </>
  );
}

function Filters({ query }: { readonly query: Address['query'] }) {
  const set = (name: string) => (event: Event) =>
    changeQuery({ [name]: (event.currentTarget as HTMLInputElement).value.trim() || undefined, cursor: undefined });
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <TextFilter label="Address of the webhook" value={query.url} onValue={set('url')} isFirst />
      <TextFilter label="Ensemble" value={query.ensemble} onValue={set('ensemble')} list="ensemble-names" />
      <EnsembleNames id="ensemble-names" />
      <label>
        Status
        <select value={query.status ?? ''} onChange={set('status')}>
          <option value="">any</option>
          {DELIVERY_STATUSES.map((status) => (
            <option key={status} value={status}>
              {status}
            </option>
          ))}
        </select>
      </label>
      <TextFilter label="Execution" value={query.execution} onValue={set('execution')} />
    </form>
  );
}

function Receivers() {
  const { can, client, say } = useApp();
  const [chosen, setChosen] = useState<Receiver>();
  const { value, problem, reload } = useData(
    'receivers',
    (api, signal) => api.get<{ readonly receivers: readonly Receiver[] }>('/receivers', { limit: 250 }, signal),
    EVERY_MS,
  );
  const resume = async ({ receiver }: Receiver) => {
    const { deliveries } = await client.send<{ readonly deliveries: number }>(
      'POST',
      at`/receivers/${receiver}/resume`,
    );
    say(`${count(deliveries, 'delivery').replace('deliverys', 'deliveries')} can be sent.`);
    reload();
  };
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (!value || value.receivers.length === 0) return null;
  return (
    <section>
      <h2>Receivers that fail</h2>
      <ul class="lines">
        {value.receivers.map((one) => (
          <li key={one.receiver}>
            <i class={`dot ${one.pausedAt === undefined ? 'busy' : 'bad'}`} /> {oneLine(one.address, 160)}{' '}
            {one.pausedAt === undefined ? 'fails since' : `is paused (${one.reason}), and failed since`}{' '}
            <Instant at={one.failingSince} />{' '}
            {one.pausedAt !== undefined && can('execute:ensembles') && (
              <button type="button" onClick={() => setChosen(one)}>
                Resume
              </button>
            )}
          </li>
        ))}
      </ul>
      {chosen && (
        <Confirm
          title="Resume this receiver"
          action="Resume it"
          onConfirm={() => resume(chosen)}
          onClose={() => setChosen(undefined)}
        >
          <p>{oneLine(chosen.address, 200)} gets what waits for it, in the order of the events.</p>
        </Confirm>
      )}
    </section>
  );
}
