/** Reads what called a service before a request: how many executions, and the trace. `api` agents and signed deliveries send both. */

import { toTraceContext } from '../../engine/events/trace-context.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';
import type { CallChain } from '../../orchestrator/runs/starts/execute-options.ts';

/** @returns the options of a start, without those whose headers are absent or wrong; undefined if there are none */
export function readCallChain(request: PlainRequest): CallChain | undefined {
  const hops = request.header('x-ensemble-hops');
  const trace = toTraceContext(request.header('traceparent'), request.header('tracestate'));
  if (hops === undefined || !/^\d{1,4}$/.test(hops)) return trace;
  return { hops: Number(hops), ...trace };
}
