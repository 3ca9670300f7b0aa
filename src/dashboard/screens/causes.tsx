/** What fails now: the errors of a span as groups, with how often, since when, and where to go on. */

import type { ErrorGroup } from '../../engine/events/tallies/stats.ts';
import type { ExecutionStats } from '../../orchestrator/runs/stats.ts';
import { changeQuery, linkTo, useAddress } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { count, formatDistance, formatNumber, oneLine } from '../format.ts';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';

const EVERY_MS = 15_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const BARS = 36;
const SHOWN = 50;

const DAY = { title: '24 hours', hours: 24 };
const PERIODS: Readonly<Record<string, typeof DAY>> = {
  hour: { title: '1 hour', hours: 1 },
  day: DAY,
  week: { title: '7 days', hours: 7 * 24 },
};

export function Causes() {
  const { period: asked = 'day' } = useAddress().query;
  const { title, hours } = PERIODS[asked] ?? DAY;
  const { value, problem, reload } = useData(
    `stats ${title}`,
    (client, signal) => {
      const since = new Date(Date.now() - hours * HOUR_MS).toISOString();
      return client.call('GET /stats', { query: { since } }, signal);
    },
    EVERY_MS,
  );
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (!value) return null;
  return (
    <section>
      <div class="causes-head">
        <Verdict stats={value} title={title} />
        <fieldset class="choice" aria-label="Period">
          {Object.entries(PERIODS).map(([name, one]) => (
            <button
              key={name}
              type="button"
              aria-pressed={one.title === title}
              onClick={() => changeQuery({ period: name === 'day' ? undefined : name })}
            >
              {one.title}
            </button>
          ))}
        </fieldset>
      </div>
      {value.errors.length > 0 && (
        <ul class="causes">
          {value.errors.slice(0, SHOWN).map((group) => (
            <Cause key={`${group.ensemble} ${group.code} ${group.message}`} group={group} stats={value} />
          ))}
        </ul>
      )}
      {value.errors.length > SHOWN && (
        <p class="hint">{count(value.errors.length - SHOWN, 'more cause')}, each with fewer executions.</p>
      )}
    </section>
  );
}

/** Green only from an exact count of 0. */
function Verdict({ stats: { counts, errors }, title }: { readonly stats: ExecutionStats; readonly title: string }) {
  const failed = counts.failed + counts.timed_out;
  const all = failed + counts.completed + counts.cancelled;
  const of = `Of ${formatNumber(all)} that ended in the last ${title}. Exact.`;
  if (failed === 0)
    return (
      <div class="verdict">
        <h2>
          <i class="dot good" /> {all === 0 ? 'No execution ended' : 'No execution failed'}
        </h2>
        <p class="hint">{all === 0 ? `In the last ${title}.` : of}</p>
      </div>
    );
  return (
    <div class="verdict">
      <h2>
        <i class="dot bad" /> {count(failed, 'execution')} failed, for {count(errors.length, 'cause')}
      </h2>
      <p class="hint">{of}</p>
    </div>
  );
}

function Cause({ group, stats }: { readonly group: ErrorGroup; readonly stats: ExecutionStats }) {
  const { ensemble, code, message, count: number, children, firstSeen, lastSeen, lastId, version } = group;
  const of = stats.ensembles.find((one) => one.ensemble === ensemble);
  const ended = of ? Object.values(of.counts).reduce((sum, one) => sum + one, 0) : number;
  const since = new Date(Math.floor(firstSeen / MINUTE_MS) * MINUTE_MS).toISOString();
  const isOfOneVersion = of?.versions.length === 1;
  return (
    <li>
      <div class="what">
        <a href={linkTo(['executions', lastId])}>
          <b>{ensemble}</b>
        </a>{' '}
        <span class="hint">{code}</span>
        <p class="why">{message === '' ? 'without a message' : oneLine(message, 400)}</p>
        <p class="hint">
          {!isOfOneVersion && `The first one ran version ${version.slice(0, 8)}. `}
          {children > 0 && `${children === number ? 'All' : formatNumber(children)} were started by steps of others. `}
          <a href={linkTo(['executions'], { ensemble, errorCode: code, since })}>All with {code}</a>
        </p>
      </div>
      <Spark counts={group.buckets} stats={stats} />
      <div class="number">
        <b>{formatNumber(number)}</b>
        <span class="hint">
          {share(number, ended)} of {formatNumber(ended)}
        </span>
      </div>
      <div class="seen">
        <Instant at={lastSeen} />
        <span class="hint">
          since <Instant at={firstSeen} exact />
        </span>
      </div>
    </li>
  );
}

/** Such as `24 %` and `0.3 %`. */
function share(number: number, of: number): string {
  const percent = (100 * number) / Math.max(of, 1);
  return `${percent < 10 ? Number(percent.toPrecision(2)) : Math.round(percent)} %`;
}

const [WIDTH, HEIGHT] = [144, 24];

/** Bars over the span, from left to right. */
function Spark({
  counts,
  stats: { since, until },
}: {
  readonly counts: readonly number[];
  readonly stats: ExecutionStats;
}) {
  const each = Math.ceil(counts.length / BARS);
  const bars = Array.from({ length: Math.ceil(counts.length / each) }, (_, at) =>
    counts.slice(at * each, (at + 1) * each).reduce((sum, one) => sum + one, 0),
  );
  const most = Math.max(...bars, 1);
  const step = WIDTH / bars.length;
  const first = bars.findIndex((one) => one > 0);
  const from = since + (Math.max(first, 0) * (until - since)) / bars.length;
  const label = `at most ${formatNumber(most)} at a time, the first ${formatDistance(from)}`;
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {bars.map((one, at) => {
        const height = one === 0 ? 1 : Math.max(2, Math.round((HEIGHT * one) / most));
        return (
          <rect
            key={`${at * step}`}
            class={one === 0 ? 'none' : 'some'}
            x={at * step}
            y={HEIGHT - height}
            width={Math.max(1, step - 1)}
            height={height}
          />
        );
      })}
    </svg>
  );
}
