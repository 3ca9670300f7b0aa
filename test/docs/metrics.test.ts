/** The page on metrics, its alerts and the dashboard for Grafana name the metrics that there are. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { METRICS, type Measure } from '../../src/engine/events/measurement.ts';
import type { Measured } from '../../src/engine/host/masking.port.ts';
import { collectMetrics } from '../../src/http-handlers/metrics/collect-metrics.ts';

const read = (path: string) => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8');

/** The names as Prometheus reads them, from the text that the handler answers with. */
async function names(): Promise<readonly string[]> {
  const listeners: Measure[] = [];
  const measured: Measured = {
    measure: undefined,
    onMeasured(listener) {
      listeners.push(listener);
      return () => {};
    },
  };
  const none = { count: 0 };
  const open = async () => ({ queued: none, running: none, waiting: none, paused: none, unresolved: none });
  const metrics = collectMetrics({ executions: { open } } as never, measured);
  for (const metric of Object.values(METRICS)) listeners[0]?.(metric, metric.labels, 1);
  return [...(await metrics.text()).matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
}

describe('metrics', () => {
  it('each has a row on the page, and each row is a metric', async () => {
    const rows = [...read('metrics.md').matchAll(/^\| `(ensemble_\w+)` \|/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual([...(await names())].sort());
  });

  it.each(['metrics.md', 'grafana-dashboard.json'])('%s asks for metrics that there are', async (path) => {
    const known = await names();
    const asked = [...read(path).matchAll(/ensemble_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter((name) => !known.includes(name))).toEqual([]);
  });
});
