/** `/workflows`, `/ensembles...` and `/agents...`: lists, shows, creates, changes and deletes definitions. */

import * as z from 'zod/mini';
import { hasScope, type Principal } from '../../engine/access/token.ts';
import { once } from '../../engine/base/once.ts';
import type { Orchestrator } from '../../orchestrator/create-orchestrator.ts';
import type { AgentItem, Definitions, EnsembleItem } from '../../orchestrator/definitions/definitions.ts';
import type { EnsembleTraffic } from '../../orchestrator/traffic/traffic.ts';
import { pageOfList } from '../reply/page-of-list.ts';
import { textField, withBodyNotes } from '../request/body-fields.ts';
import { flag, page, text } from '../request/read-query.ts';
import { type BodyForm, call, type Given, type Queries } from './define-call.ts';

type ItemOf<K> = K extends 'ensemble' ? EnsembleItem : AgentItem;
/** What a call of one definition gets, whatever its path. */
type Named<Q extends Queries = Record<never, never>, F extends BodyForm = 'definition'> = Given<'/:name', Q, F>;
const query = { ...page, active: flag };

/** What is said about the version that a change makes. */
const notes = { label: text, message: text, commit: text };
const rollback = once(() =>
  z.strictObject({ to: z.string({ error: 'must be the label or the hash of a version' }), message: textField() }),
);

/** The name of the token says who it was. One that may not start ensembles stores none that others start. */
function callerOf(principal: Principal | undefined) {
  if (!principal) return {};
  return { actor: principal.name, webhooks: hasScope(principal, 'execute:ensembles') };
}

function definitionsOf<K extends 'ensemble' | 'agent'>(kind: K) {
  return (orchestrator: Orchestrator) => orchestrator[`${kind}s`] as unknown as Definitions<`${K}s`, ItemOf<K>>;
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
  const of = definitionsOf(kind);
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
      ...{
        id: `create${name}`,
        summary: `Creates an ${kind}`,
        scope: `write:${kind}s`,
        body: 'definition',
        query: notes,
      },
      replies: { 201: 'Definition' },
      run: ({ orchestrator, principal, body, query }) =>
        of(orchestrator).create(body, { ...query, ...callerOf(principal) }),
      etag: ({ version }) => version,
      location: (made) => `/${kind}s/${made.name}`,
    }),
    call(`GET ${path}/:name`, {
      ...{ id: `get${name}`, summary: `An ${kind} with its definition`, ...reads, of: kind, ...item },
      run: ({ orchestrator, name }: Named) => of(orchestrator).get(name),
    }),
    call(`PUT ${path}/:name`, {
      ...{ id: `update${name}`, summary: `Replaces an ${kind}`, body: 'definition', query: notes, ...changes, ...item },
      run: ({ orchestrator, principal, name, body, condition, query }: Named<typeof notes>) =>
        of(orchestrator).update(name, body, { ...query, ...condition, ...callerOf(principal) }),
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

/** The versions of a name. */
export function versionCalls<P extends string, K extends 'ensemble' | 'agent'>(path: P, kind: K) {
  const name = kind === 'ensemble' ? 'Ensemble' : 'Agent';
  const of = definitionsOf(kind);
  const reads = { scope: `read:${kind}s`, of: kind } as const;
  return [
    call(`GET ${path}/:name/versions`, {
      ...{ id: `list${name}Versions`, summary: 'Lists the versions that are kept, the newest first', ...reads },
      query: page,
      replies: { 200: 'DefinitionVersions' },
      async run(given: Named<typeof page>) {
        const versions = await of(given.orchestrator).versions(given.name);
        // By their place from the end, which a new version does not change.
        const placed = versions.map((one, i) => ({ one, place: versions.length - i }));
        const { versions: found, ...next } = pageOfList(given, 'versions', placed, {
          idOf: ({ place }) => String(place),
          compare: (a, b) => Number(b) - Number(a),
        });
        return { versions: found.map(({ one }) => one), ...next };
      },
    }),
    call(`GET ${path}/:name/versions/:version`, {
      ...{ id: `get${name}Version`, summary: 'A version with its definition', ...reads },
      replies: { 200: 'VersionedDefinition' },
      run: ({ orchestrator, name, version }: Given<'/:name/:version', Record<never, never>, undefined>) =>
        of(orchestrator).version(name, version),
    }),
    call(`POST ${path}/:name/rollback`, {
      ...{ id: `rollBack${name}`, summary: 'Makes an earlier version the newest one', scope: `write:${kind}s` },
      ...{ of: kind, readsIfMatch: true, body: rollback, replies: { 200: 'Definition' } },
      run: ({ orchestrator, principal, name, body, condition }: Named<Record<never, never>, typeof rollback>) =>
        of(orchestrator).rollback(name, { ...body, ...condition, ...callerOf(principal) }),
      etag: ({ version }: ItemOf<K>) => version,
    }),
  ] as const;
}

const TRAFFIC_FIELDS = {
  ...{ version: { type: 'string' }, split: { type: 'object', additionalProperties: { type: 'integer' } } },
  ...{ by: { type: 'string' }, guard: { type: 'string' }, steps: { type: 'array', items: { type: 'integer' } } },
  ...{ every: { type: ['string', 'number'] }, shadow: { type: 'string' }, message: { type: 'string' } },
};
// `ensembles.traffic` checks the values.
const newTraffic = once(() =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(TRAFFIC_FIELDS).map(([key, notes]) => [key, z.optional(withBodyNotes(z.unknown(), notes))]),
    ),
  ),
);

/** What executions have shown is for those who may read them. */
function shownTo(principal: Principal | undefined, traffic: EnsembleTraffic): EnsembleTraffic {
  if (!traffic.shadowed || principal === undefined || hasScope(principal, 'read:executions')) return traffic;
  return { ...traffic, shadowed: { ...traffic.shadowed, differences: [] } };
}

export const trafficCalls = [
  call('GET /ensembles/:name/traffic', {
    ...{ id: 'getTraffic', summary: 'Which versions new executions run', scope: 'read:ensembles', of: 'ensemble' },
    replies: { 200: 'Traffic' },
    run: async ({ orchestrator, principal, name }) => shownTo(principal, await orchestrator.ensembles.traffic(name)),
  }),
  call('PUT /ensembles/:name/traffic', {
    ...{ id: 'setTraffic', summary: 'Says which versions new executions run', scope: 'write:ensembles' },
    ...{ of: 'ensemble', body: newTraffic, replies: { 200: 'Traffic' } },
    run: async ({ orchestrator, principal, name, body }) => {
      const given = { ...body, ...callerOf(principal) } as never;
      return shownTo(principal, await orchestrator.ensembles.traffic(name, given));
    },
  }),
] as const;
