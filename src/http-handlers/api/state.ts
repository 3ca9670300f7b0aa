/** `/state/:ensemble`: reads, replaces, patches and clears the state of an ensemble. */

import type { EnsembleState } from '../../orchestrator/ensemble-states.ts';
import type { HttpCall } from '../call.ts';
import { etagOf, readIfMatch } from '../etag.ts';
import { readName } from '../read-id.ts';
import { PATCH_TYPES, readJson } from '../read-json.ts';
import type { Reply } from '../reply.ts';

export async function getState(call: HttpCall): Promise<Reply> {
  return stateReply(await call.parts.orchestrator.state.get(readName(call, 'ensemble')));
}

export async function putState(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'ensemble');
  const options = readIfMatch(call.request);
  return stateReply(await call.parts.orchestrator.state.set(name, await readJson(call, null), options));
}

/** The body is a JSON Merge Patch. */
export async function patchState(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'ensemble');
  const options = readIfMatch(call.request);
  return stateReply(await call.parts.orchestrator.state.patch(name, await readJson(call, null, PATCH_TYPES), options));
}

export async function clearState(call: HttpCall): Promise<Reply> {
  return stateReply(await call.parts.orchestrator.state.clear(readName(call, 'ensemble'), readIfMatch(call.request)));
}

function stateReply({ state, version, updatedAt }: EnsembleState): Reply {
  return { status: 200, json: { state, version, updatedAt }, headers: etagOf(version) };
}
