/** `GET /ensembles...`: lists the ensembles and shows one. */

import type { HttpCall } from '../call.ts';
import { readName } from '../read-id.ts';
import { readLimit, readQuery } from '../read-query.ts';
import type { Reply } from '../reply.ts';

export async function listEnsembles({ parts, request }: HttpCall): Promise<Reply> {
  const { limit, cursor } = readQuery(request.query, ['limit', 'cursor']);
  return { status: 200, json: await parts.orchestrator.ensembles.list({ limit: readLimit(limit), cursor }) };
}

export async function getEnsemble(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'ensemble');
  return { status: 200, json: await call.parts.orchestrator.ensembles.get(name) };
}
