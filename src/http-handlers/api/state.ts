/** `/state/:name`: reads, replaces, patches and clears the state of an ensemble. */

import type { EnsembleState } from '../../orchestrator/definitions/ensemble-states.ts';
import { VALUE_BYTES } from '../reply/response-sizes.ts';
import { call } from './define-call.ts';

const common = {
  of: 'ensemble',
  replies: { 200: 'State' },
  etag: ({ version }: EnsembleState) => version,
} as const;
const change = { ...common, scope: 'write:state', readsIfMatch: true } as const;

export const stateCalls = [
  call('GET /state/:name', {
    ...{ id: 'getState', summary: 'The state of an ensemble', scope: 'read:state', maxBytes: VALUE_BYTES, ...common },
    run: ({ orchestrator, name }) => orchestrator.state.get(name).then(toStateBody),
  }),
  call('PUT /state/:name', {
    ...{ id: 'setState', summary: 'Replaces the state', body: 'object', ...change },
    run: ({ orchestrator, name, body, condition }) => orchestrator.state.set(name, body, condition).then(toStateBody),
  }),
  call('PATCH /state/:name', {
    ...{ id: 'patchState', summary: 'Changes parts of the state', body: 'patch', ...change },
    run: ({ orchestrator, name, body, condition }) => orchestrator.state.patch(name, body, condition).then(toStateBody),
  }),
  call('DELETE /state/:name', {
    ...{ id: 'clearState', summary: 'Sets the state back', ...change },
    run: ({ orchestrator, name, condition }) => orchestrator.state.clear(name, condition).then(toStateBody),
  }),
] as const;

function toStateBody({ state, version, updatedAt }: EnsembleState): EnsembleState {
  return { state, version, updatedAt };
}
