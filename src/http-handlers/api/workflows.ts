/** `GET /workflows`: the ensembles in the form of the specification's paginated list. */

import type { HttpCall } from '../call.ts';
import { readFlag, readLimit, readQuery } from '../read-query.ts';
import type { Reply } from '../reply.ts';

export async function listWorkflows({ parts, request }: HttpCall): Promise<Reply> {
  const { limit, cursor, active } = readQuery(request.query, ['limit', 'cursor', 'active']);
  const page = { limit: readLimit(limit), cursor, active: readFlag(active, 'active') };
  const { ensembles, nextCursor } = await parts.orchestrator.ensembles.list(page);
  const data = ensembles.map(({ name, description, active: isActive, definition, version, createdAt, updatedAt }) => ({
    ...{ id: name, name, description, active: isActive, triggers: definition.trigger ?? [] },
    ...{ version, createdAt, updatedAt },
  }));
  return { status: 200, json: nextCursor === undefined ? { data } : { data, nextCursor } };
}
