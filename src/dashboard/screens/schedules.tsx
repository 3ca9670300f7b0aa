/** Schedules: their next instants and last execution, pause and resume, and run now. */

import { useState } from 'preact/hooks';
import type { Schedule } from '../../orchestrator/schedules/schedule-control.ts';
import { goTo, linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { RowLink } from '../parts/row-link.tsx';
import { Table } from '../parts/table.tsx';

const EVERY_MS = 15_000;

type Action = 'pause' | 'resume' | 'run';
interface Asked {
  readonly action: Action;
  readonly schedule: Schedule;
}

const TEXTS: Readonly<Record<Action, { readonly title: string; readonly button: string; readonly what: string }>> = {
  pause: {
    ...{ title: 'Pause this schedule', button: 'Pause it' },
    what: 'Its ticks are dropped, in every process, until it is resumed. Executions that run continue.',
  },
  resume: {
    ...{ title: 'Resume this schedule', button: 'Resume it' },
    what: 'Its next tick starts an execution. The ticks in between are not made up for.',
  },
  run: { title: 'Run now', button: 'Start it', what: 'An execution starts now, as a tick would start it.' },
};

export function Schedules() {
  const [asked, setAsked] = useState<Asked>();
  const { value, problem, isLoading, reload } = useData(
    'schedules',
    (client, signal) => client.all('GET /schedules', 'schedules', {}, signal),
    EVERY_MS,
  );
  return (
    <>
      <h1>Schedules</h1>
      {problem && <Failure problem={problem} onRetry={reload} />}
      {isLoading && <p class="empty">Loading...</p>}
      {value?.length === 0 && (
        <p class="empty">
          There are no schedules. Give an ensemble of your code a trigger:{' '}
          <code>{'{ type: schedule, cron: "0 8 * * *" }'}</code>
        </p>
      )}
      {value && value.length > 0 && <ScheduleTable schedules={value} onAsk={setAsked} />}
      {asked && <ActionDialog asked={asked} onDone={reload} onClose={() => setAsked(undefined)} />}
    </>
  );
}

interface TableProps {
  readonly schedules: readonly Schedule[];
  onAsk(asked: Asked): void;
}

function ScheduleTable({ schedules, onAsk }: TableProps) {
  return (
    <Table heads={['Ensemble', 'Pattern', 'State', 'Next', 'Last execution', '']}>
      {schedules.map((schedule) => (
        <Row key={schedule.id} schedule={schedule} onAsk={(action) => onAsk({ action, schedule })} />
      ))}
    </Table>
  );
}

function Row({ schedule, onAsk }: { readonly schedule: Schedule; onAsk(action: Action): void }) {
  const { can } = useApp();
  const { ensemble, cron, timezone, paused, next, last } = schedule;
  return (
    <tr>
      <td>
        <RowLink path={['ensembles', ensemble]}>{ensemble}</RowLink>
      </td>
      <td>
        <code>{cron}</code> <span class="hint">{timezone}</span>
      </td>
      <td>
        <Badge status={paused ? 'paused' : 'active'} />
      </td>
      <td>
        {next.map((instant) => (
          <div key={instant}>
            <Instant at={instant} exact />
          </div>
        ))}
      </td>
      <td>
        {last ? (
          <>
            <a href={linkTo(['executions', last.executionId])}>
              <Instant at={last.scheduledAt} />
            </a>{' '}
            {last.status && <Badge status={last.status} />}{' '}
            <a href={linkTo(['executions'], { ensemble })}>all of {ensemble}</a>
          </>
        ) : (
          <span class="hint">none yet</span>
        )}
      </td>
      <td>
        {can('execute:ensembles') && (
          <button type="button" class="quiet" onClick={() => onAsk('run')}>
            Run now
          </button>
        )}
        {can('write:ensembles') && (
          <button type="button" class="quiet" onClick={() => onAsk(paused ? 'resume' : 'pause')}>
            {paused ? 'Resume' : 'Pause'}
          </button>
        )}
      </td>
    </tr>
  );
}

interface ActionProps {
  readonly asked: Asked;
  onDone(): void;
  onClose(): void;
}

function ActionDialog({ asked: { action, schedule }, onDone, onClose }: ActionProps) {
  const { client, say } = useApp();
  const { title, button, what } = TEXTS[action];
  const confirm = async () => {
    const { id } = schedule;
    if (action === 'run') {
      const { executionId } = await client.call('POST /schedules/:id/run', { id });
      goTo(['executions', executionId]);
      return;
    }
    await client.call(`POST /schedules/:id/${action}`, { id });
    say(action === 'pause' ? 'The schedule is paused.' : 'The schedule is active.');
    onDone();
  };
  return (
    <Confirm title={title} action={button} onConfirm={confirm} onClose={onClose}>
      <p>
        <strong>{schedule.ensemble}</strong>, <code>{schedule.cron}</code> {schedule.timezone}
      </p>
      <p>{what}</p>
    </Confirm>
  );
}
