/** Deliveries: the receivers that fail, the log with its filters, and what sends many again. */

import { useState } from 'preact/hooks';
import { DELIVERY_STATUSES } from '../../engine/delivery/delivery.ts';
import type { Address } from '../address.ts';
import { useApp } from '../app-state.ts';
import { Confirm } from '../parts/dialog.tsx';
import { ChoiceFilter, EnsembleFilter, FilterText, filterOf, TextFilter } from '../parts/filters.tsx';
import { DeliveryTable } from './delivery-table.tsx';
import { FailingReceivers } from './failing-receivers.tsx';

const EVERY_MS = 10_000;
const FILTERS = ['ensemble', 'execution', 'status', 'url'] as const;

export function Deliveries({ query }: { readonly query: Address['query'] }) {
  const { can, client, say } = useApp();
  const [asked, setAsked] = useState<Readonly<Record<string, string>>>();
  const filter = filterOf(query, FILTERS);
  const replay = async () => {
    await client.call('POST /replays', { body: asked });
    say('They are sent again, one after the other.');
  };
  return (
    <>
      <div class="title">
        <h1>Deliveries</h1>
        {can('execute:ensembles') && (
          <span class="buttons">
            <button type="button" onClick={() => setAsked(filter)}>
              Send all that match again
            </button>
          </span>
        )}
      </div>
      <FailingReceivers />
      <Filters query={query} />
      <DeliveryTable
        query={{ ...filter, cursor: query.cursor }}
        path={['deliveries']}
        {...(query.cursor === undefined && { every: EVERY_MS })}
      />
      {asked && (
        <Confirm
          title="Send deliveries again"
          action="Send them"
          onConfirm={replay}
          onClose={() => setAsked(undefined)}
        >
          <FilterText filter={asked} all="all deliveries" />
          <p class="hint">Pending ones stay as they are. Each has the same id and the same body as before.</p>
        </Confirm>
      )}
    </>
  );
}

function Filters({ query }: { readonly query: Address['query'] }) {
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <TextFilter query={query} name="url" label="Address of the webhook" isFirst />
      <EnsembleFilter query={query} />
      <ChoiceFilter query={query} name="status" label="Status" choices={DELIVERY_STATUSES} />
      <TextFilter query={query} name="execution" label="Execution" />
    </form>
  );
}
