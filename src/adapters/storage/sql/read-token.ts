/** Builds tokens from their rows in an SQL store. */

import type { Plan } from '../../../engine/access/plan.ts';
import type { StoredToken, TokenScope } from '../../../engine/access/token.ts';
import { isOrchestratorError } from '../../../engine/base/errors.ts';
import { damagedRow, readJson, readNumber, readObject, readText, type StoredRow } from './columns.ts';

/**
 * A damaged row must not hide the other rows or itself, because then it could not be revoked. It is listed as a token
 * without scopes.
 */
export function readListedToken(row: StoredRow): StoredToken {
  try {
    return readToken(row);
  } catch (error) {
    if (!isOrchestratorError(error, 'INTERNAL')) throw error;
    const { id, digest, last4, created_at: createdAt } = row;
    const what = { id: String(id), digest: String(digest), last4: String(last4), createdAt: Number(createdAt) || 0 };
    return { ...what, name: '(damaged row)', scopes: [], plan: 'free' };
  }
}

/** Figures are stored as JSON, a plan's name as it is. */
export function toPlanColumn(plan: Plan): string {
  return typeof plan === 'string' ? plan : JSON.stringify(plan);
}

function readPlan(row: StoredRow, name: string): Plan {
  const text = row.plan;
  return typeof text === 'string' && text.startsWith('{')
    ? (readObject(row, 'plan', name) as Plan)
    : (readText(row, 'plan', name) as Plan);
}

/** @throws INTERNAL when a column is damaged */
export function readToken(row: StoredRow): StoredToken {
  const name = `token ${String(row.id)}`;
  const scopes = readJson(row, 'scopes', name);
  if (!Array.isArray(scopes)) throw damagedRow(name, 'scopes');
  return {
    id: readText(row, 'id', name),
    name: readText(row, 'name', name),
    scopes: scopes as readonly TokenScope[],
    plan: readPlan(row, name),
    digest: readText(row, 'digest', name),
    last4: readText(row, 'last4', name),
    createdAt: readNumber(row, 'created_at', name),
    ...(row.expires_at !== null && { expiresAt: readNumber(row, 'expires_at', name) }),
    ...(row.last_used !== null && { lastUsed: readNumber(row, 'last_used', name) }),
  };
}
