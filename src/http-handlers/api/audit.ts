/** `GET /audit`: who changed which executions. */

import { AUDIT_ACTIONS, type AuditEntry } from '../../engine/access/audit-entry.ts';
import type { AuditFilter } from '../../orchestrator/operators/audit.ts';
import type { HttpCall } from '../call.ts';
import { LIST_BYTES } from '../reply/response-sizes.ts';
import { executionId, instant, page, text, word } from '../request/read-query.ts';
import { Answer, call } from './define-call.ts';

const LINES = 'application/x-ndjson';

export const auditCalls = [
  // All entries as JSON lines, with `format=lines`; otherwise a page.
  call('GET /audit', {
    id: 'listAudit',
    summary: 'The audit log: who changed which executions, when, from where and why',
    scope: 'admin',
    query: {
      ...{ since: instant, until: instant, action: word(AUDIT_ACTIONS), executionId, by: text, ...page },
      format: word(['page', 'lines'] as const, { default: 'page' }),
    },
    maxBytes: LIST_BYTES,
    replies: { 200: 'AuditEntries' },
    run({ orchestrator: { audit }, query: { format, limit, cursor, ...filter }, http }) {
      if (format !== 'lines') return audit.list({ ...filter, limit, cursor });
      const headers = { 'content-type': LINES };
      const isHead = http.request.method === 'HEAD';
      return new Answer({ status: 200, headers, ...(!isHead && { stream: linesOf(http, filter) }) }) as never;
    },
  }),
] as const;

function linesOf({ dependencies }: HttpCall, filter: AuditFilter): ReadableStream<Uint8Array> {
  const { orchestrator, toJson } = dependencies;
  const entries: AsyncIterator<AuditEntry> = orchestrator.audit.all(filter);
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await entries.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`${toJson(value)}\n`));
    },
    async cancel() {
      await entries.return?.();
    },
  });
}
