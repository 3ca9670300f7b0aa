/** An entry of the audit log: who changed what of executions and jobs. */

import type { JsonObject } from '../base/json/json.ts';

/** What the audit log has entries of. */
export type AuditAction =
  | 'execution.cancel'
  | 'execution.pause'
  | 'execution.resume'
  | 'execution.retry'
  | 'execution.complete'
  | 'execution.move'
  | 'execution.delete'
  | 'executions.pause'
  | 'executions.resume'
  | 'job.create'
  | 'job.stop';

export const AUDIT_ACTIONS: readonly AuditAction[] = [
  ...(['execution.cancel', 'execution.pause', 'execution.resume', 'execution.retry'] as const),
  ...(['execution.complete', 'execution.move', 'execution.delete'] as const),
  ...(['executions.pause', 'executions.resume', 'job.create', 'job.stop'] as const),
];

export interface AuditEntry {
  readonly id: string;
  /** Unix ms. */
  readonly at: number;
  readonly action: AuditAction;
  /** What was to be changed: `executionId`, `ensemble`, `all`, `jobId` or the `filter` of several executions. */
  readonly target: JsonObject;
  /** Who asked, as far as the caller said it. */
  readonly by?: { readonly name: string; readonly tokenId?: string };
  readonly from: { readonly type: 'call' | 'http'; readonly address?: string; readonly requestId?: string };
  readonly reason?: string;
  /** What was asked for, such as the `from` of a retry. Absent without options. */
  readonly options?: JsonObject;
  /** The status before. Absent for several executions. */
  readonly before?: JsonObject;
  /** What became of it. Absent if the process ended before it was known, and after an `error`. */
  readonly after?: JsonObject;
  /** Why nothing was changed. */
  readonly error?: { readonly code: string; readonly message: string };
}
