/** `/workflows`, `/ensembles...` and `/agents...`: lists, shows, creates, changes and deletes definitions. */

import { hasScope, type Principal } from '../../engine/access/token.ts';
import type { Orchestrator } from '../../orchestrator/create-orchestrator.ts';
import type { AgentItem, Definitions, EnsembleItem } from '../../orchestrator/definitions/definitions.ts';
import { flag, page } from '../request/read-query.ts';
import { call, type Given } from './define-call.ts';

type ItemOf<K> = K extends 'ensemble' ? EnsembleItem : AgentItem;
/** What a call of one definition gets, whatever its path. */
type Named = Given<'/:name', Record<never, never>, 'definition'>;
const query = { ...page, active: flag };

/** A token that may not start ensembles stores none that others start. */
function mayStart(principal: Principal | undefined): { readonly webhooks: boolean } {
  return { webhooks: principal === undefined || hasScope(principal, 'execute:ensembles') };
}

/** The specification's paginated list. */
export const workflowCalls = [
  call('GET /workflows', {
    id: 'listWorkflows',
    summary: 'Lists the ensembles',
    scope: 'read:ensembles',
    takesApiKey: true,
    query,
    replies: { 200: 'Workflows' },
    async run({ orchestrator, query }) {
      const { ensembles, nextCursor } = await orchestrator.ensembles.list(query);
      const data = ensembles.map(({ name, description, active, definition, version, createdAt, updatedAt }) => ({
        ...{ id: name, name, description, active, triggers: definition.trigger ?? [] },
        ...{ version, createdAt, updatedAt },
      }));
      return nextCursor === undefined ? { data } : { data, nextCursor };
    },
  }),
] as const;

/** @param path - `//ensembles` too: the specification's error examples name the path without `/api/v1` */
export function definitionCalls<P extends string, K extends 'ensemble' | 'agent'>(path: P, kind: K) {
  const suffix = path.startsWith('//') ? 'Unprefixed' : '';
  const name = `${kind === 'ensemble' ? 'Ensemble' : 'Agent'}${suffix}`;
  const of = (orchestrator: Orchestrator) => orchestrator[`${kind}s`] as unknown as Definitions<`${K}s`, ItemOf<K>>;
  const reads = { scope: `read:${kind}s` } as const;
  const changes = { scope: `write:${kind}s`, of: kind, readsIfMatch: true } as const;
  const item = { replies: { 200: 'Definition' }, etag: ({ version }: ItemOf<K>) => version } as const;
  return [
    call(`GET ${path}`, {
      ...{ id: `list${name}s`, summary: `Lists the ${kind}s`, ...reads, query },
      replies: { 200: kind === 'ensemble' ? 'Ensembles' : 'Agents' },
      run: ({ orchestrator, query }) => of(orchestrator).list(query),
    }),
    call(`POST ${path}`, {
      ...{ id: `create${name}`, summary: `Creates an ${kind}`, scope: `write:${kind}s`, body: 'definition' },
      replies: { 201: 'Definition' },
      run: ({ orchestrator, principal, body }) => of(orchestrator).create(body, mayStart(principal)),
      etag: ({ version }) => version,
      location: (made) => `/${kind}s/${made.name}`,
    }),
    call(`GET ${path}/:name`, {
      ...{ id: `get${name}`, summary: `An ${kind} with its definition`, ...reads, of: kind, ...item },
      run: ({ orchestrator, name }: Named) => of(orchestrator).get(name),
    }),
    call(`PUT ${path}/:name`, {
      ...{ id: `update${name}`, summary: `Replaces an ${kind}`, body: 'definition', ...changes, ...item },
      run: ({ orchestrator, principal, name, body, condition }: Named) =>
        of(orchestrator).update(name, body, { ...condition, ...mayStart(principal) }),
    }),
    call(`DELETE ${path}/:name`, {
      ...{ id: `delete${name}`, summary: `Deletes an ${kind}`, ...changes },
      replies: { 200: 'DeletedDefinition' },
      run: ({ orchestrator, name, condition }: Named) => of(orchestrator).delete(name, condition),
    }),
    call(`POST ${path}/:name/activate`, {
      ...{ id: `activate${name}`, summary: `Lets an ${kind} be started again`, ...changes, ...item },
      run: ({ orchestrator, name, condition }: Named) => of(orchestrator).activate(name, condition),
    }),
    call(`POST ${path}/:name/deactivate`, {
      ...{ id: `deactivate${name}`, summary: `Lets an ${kind} be started no longer`, ...changes, ...item },
      run: ({ orchestrator, name, condition }: Named) => of(orchestrator).deactivate(name, condition),
    }),
  ] as const;
}
