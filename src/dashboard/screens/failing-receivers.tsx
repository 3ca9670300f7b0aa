/** The receivers that fail now, and what resumes a paused one. */

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Receiver } from '../../orchestrator/deliveries/deliveries.ts';
import { linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { count, oneLine } from '../format.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';

const EVERY_MS = 10_000;

/** @param none - what is shown if there is none */
export function FailingReceivers({ none = null }: { readonly none?: ComponentChildren }) {
  const { can, client, say } = useApp();
  const [chosen, setChosen] = useState<Receiver>();
  const { value, problem, reload } = useData(
    'receivers',
    (api, signal) => api.all('GET /receivers', 'receivers', {}, signal),
    EVERY_MS,
  );
  const resume = async ({ receiver }: Receiver) => {
    const { deliveries } = await client.call('POST /receivers/:id/resume', { id: receiver });
    say(`${count(deliveries, 'delivery', 'deliveries')} can be sent.`);
    reload();
  };
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (!value) return null;
  if (value.length === 0) return <>{none}</>;
  return (
    <section>
      <h2>
        Receivers that fail <span class="hint">{value.length}</span>
      </h2>
      <ul class="lines">
        {value.map((one) => (
          <li key={one.receiver}>
            <i class={`dot ${one.pausedAt === undefined ? 'busy' : 'bad'}`} />{' '}
            <a href={linkTo(['deliveries'], { url: one.address })}>{oneLine(one.address, 160)}</a>{' '}
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
