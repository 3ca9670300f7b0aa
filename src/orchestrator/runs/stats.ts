/** Numbers of executions in a span of time, for `executions.stats`. */

import { invalid } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import {
  BUCKETS,
  BUCKETS_FOR,
  type EndStats,
  STATS_BUCKETS,
  type StatsBucket,
  statsOf,
} from '../../engine/events/tallies/stats.ts';
import { DAY } from '../../engine/events/tallies/tally.ts';
import type { OpenCounts } from '../../engine/execution/execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { TallyStore } from '../../engine/storage/storage.port.ts';
import { readInstant } from './execution-filter.ts';

/** The executions that have not ended, those that need attention, and those of the last hour. */
export interface OpenExecutions extends OpenCounts {
  /** How many executions were accepted in the last hour. */
  readonly lastHour: number;
}

export interface StatsFilter {
  /** Executions that ended at this instant or later: Unix ms or a Date. Default: a day before `until`. */
  readonly since?: number | Date | undefined;
  /** Executions that ended before this instant: Unix ms or a Date. Default: now. */
  readonly until?: number | Date | undefined;
  /**
   * The length of the periods of `buckets`. There are minutes for the last hour, and hours for the last 14 days. Default: the
   * shortest of which at most 400 are in the span.
   */
  readonly bucket?: StatsBucket | undefined;
  /** Only this ensemble. */
  readonly ensemble?: string | undefined;
}

export interface ExecutionStats extends EndStats {
  /** Unix ms: the span that was counted, in whole buckets. */
  readonly since: number;
  readonly until: number;
  readonly bucket: StatsBucket;
  /** What has not ended now, of all ensembles. */
  readonly open: OpenExecutions;
}

const MAX_BUCKETS = 400;

export function createStats(
  tallies: Pick<TallyStore, 'read'>,
  clock: Pick<Clock, 'now'>,
  open: () => Promise<OpenExecutions>,
  demandEnsemble: (name: string) => Promise<void>,
): (filter?: StatsFilter) => Promise<ExecutionStats> {
  return async (filter = {}) => {
    refuseUnknownKeys(filter, ['since', 'until', 'bucket', 'ensemble'], 'executions.stats');
    const { bucket: asked, ensemble } = filter;
    const now = clock.now();
    // What ends in this ms counts.
    const end = readInstant(filter.until, 'until') ?? now + 1;
    const begin = readInstant(filter.since, 'since') ?? end - DAY;
    if (begin >= end) throw invalid('`since` must be before `until`');
    if (asked !== undefined && !STATS_BUCKETS.includes(asked))
      throw invalid(`\`bucket\` must be one of ${STATS_BUCKETS.join(', ')}, not ${JSON.stringify(asked)}`);
    const spanOf = (bucket: StatsBucket) => {
      const length = BUCKETS[bucket];
      const [since, until] = [Math.floor(begin / length) * length, Math.ceil(end / length) * length];
      return { bucket, length, since, until, isKept: begin >= now - BUCKETS_FOR[bucket] };
    };
    const fits = ({ since, until, length }: ReturnType<typeof spanOf>) => until - since <= MAX_BUCKETS * length;
    const spans = STATS_BUCKETS.map(spanOf);
    const span = asked ? spanOf(asked) : spans.find((one) => one.isKept && fits(one));
    if (!span || !fits(span))
      throw invalid(`the span has more than ${MAX_BUCKETS} ${asked ?? 'day'}s: ask for a shorter one`);
    if (!span.isKept) {
      const kept = span.bucket === 'minute' ? 'hour' : `${BUCKETS_FOR[span.bucket] / DAY} days`;
      throw invalid(
        `\`bucket: ${span.bucket}\` is for the last ${kept}, and \`since\` is before that: leave \`bucket\` out, or ask for a later \`since\``,
      );
    }
    if (ensemble !== undefined) await demandEnsemble(ensemble);
    const { since, until, length, bucket } = span;
    const [found, opened] = await Promise.all([tallies.read({ since, until, ensemble }), open()]);
    return { since, until, bucket, ...statsOf(found, { since, until, length }), open: opened };
  };
}
