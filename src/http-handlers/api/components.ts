/** `/components...`: registers components, creates versions, and deploys them. The name of the token says who did it. */

import * as z from 'zod/mini';
import type { Principal } from '../../engine/access/token.ts';
import { once } from '../../engine/base/once.ts';
import { COMPONENT_KINDS, compareVersions, type Deployment } from '../../engine/component/component.ts';
import { deploymentTag } from '../../engine/component/split.ts';
import type { Component } from '../../orchestrator/components/components.ts';
import { pageOfList } from '../reply/page-of-list.ts';
import { VALUE_BYTES } from '../reply/response-sizes.ts';
import { withBodyNotes } from '../request/body-fields.ts';
import { page, text } from '../request/read-query.ts';
import { call } from './define-call.ts';

const TEXT = { type: 'string' };
const FIELDS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  ...{
    name: TEXT,
    kind: { enum: COMPONENT_KINDS },
    file: TEXT,
    metadata: { type: 'object', additionalProperties: true },
  },
  ...{ version: TEXT, content: TEXT, message: TEXT },
  ...{ split: { type: 'object', additionalProperties: { type: 'number' } }, by: TEXT, guard: TEXT },
  ...{ steps: { type: 'array', items: { type: 'number' } }, every: { type: ['string', 'number'] } },
};

// `orchestrator.components` checks the values.
const body = (...keys: readonly string[]) =>
  z.strictObject(
    Object.fromEntries(keys.map((key) => [key, z.optional(withBodyNotes(z.unknown(), FIELDS[key] ?? {}))])),
  );
const newComponent = once(() =>
  withBodyNotes(body('name', 'kind', 'file', 'metadata'), { required: ['name', 'kind'] }),
);
const componentChange = once(() => body('file', 'metadata'));
const newVersion = once(() =>
  withBodyNotes(body('version', 'content', 'message'), { required: ['version', 'content'] }),
);
const newDeployment = once(() =>
  withBodyNotes(body('version', 'split', 'by', 'guard', 'steps', 'every', 'message'), {
    anyOf: [{ required: ['version'] }, { required: ['split'] }],
  }),
);
const rollbackReason = once(() => body('from', 'message'));

const actorOf = (principal: Principal | undefined) => (principal ? { actor: principal.name } : {});

const reads = { scope: 'read:components', of: 'component' } as const;
const changes = { scope: 'write:components', of: 'component' } as const;
const item = { replies: { 200: 'Component' }, etag: ({ tag }: Component) => tag } as const;
const deployed = { replies: { 200: 'Deployment' }, etag: deploymentTag as (one: Deployment) => string } as const;

export const componentCalls = [
  call('GET /components', {
    id: 'listComponents',
    summary: 'Lists components',
    scope: 'read:components',
    query: page,
    replies: { 200: 'Components' },
    run: ({ orchestrator, query }) => orchestrator.components.list(query),
  }),
  call('POST /components', {
    id: 'createComponent',
    summary: 'Registers a component',
    scope: 'write:components',
    body: newComponent,
    replies: { 201: 'Component' },
    run: ({ orchestrator, body }) => orchestrator.components.register(body as never),
    etag: ({ tag }) => tag,
    location: ({ name }) => `/components/${name}`,
  }),
  call('GET /components/:name', {
    ...{ id: 'getComponent', summary: 'A component', ...reads, ...item },
    run: ({ orchestrator, name }) => orchestrator.components.get(name),
  }),
  call('PUT /components/:name', {
    ...{ id: 'updateComponent', summary: 'Replaces the file and the metadata', ...changes, ...item },
    readsIfMatch: true,
    body: componentChange,
    run: ({ orchestrator, name, body, condition }) => orchestrator.components.update(name, body, condition),
  }),
  call('GET /components/:name/versions', {
    ...{ id: 'listVersions', summary: 'Lists the versions, the highest first', ...reads, query: page },
    replies: { 200: 'Versions' },
    run: async (given) =>
      pageOfList(given, 'versions', await given.orchestrator.components.versions(given.name), {
        idOf: ({ version }) => version,
        compare: (a, b) => compareVersions(b, a),
      }),
  }),
  call('POST /components/:name/versions', {
    ...{ id: 'createVersion', summary: 'Creates a version', ...changes, body: newVersion },
    replies: { 201: 'Version' },
    run: ({ orchestrator, name, body, principal }) =>
      orchestrator.components.createVersion(name, { ...body, ...actorOf(principal) } as never),
  }),
  // By its number, by `latest` or by an environment.
  call('GET /components/:name/versions/:version', {
    ...{ id: 'getVersion', summary: 'A version with its text', ...reads, query: { key: text } },
    maxBytes: VALUE_BYTES,
    replies: { 200: 'ResolvedVersion' },
    async run({ orchestrator: { components }, name, version, query }) {
      const { kind } = await components.get(name);
      return components.resolve(`${kind}://${name}@${version}`, query);
    },
  }),
  call('GET /components/:name/deployments', {
    ...{ id: 'listDeployments', summary: 'What each environment has', ...reads, query: page },
    replies: { 200: 'Deployments' },
    async run(given) {
      const found = await given.orchestrator.components.deployments(given.name);
      // The `ETag` of each, for a change with `If-Match`.
      const deployments = found.map((one) => ({ ...one, tag: deploymentTag(one) }));
      return pageOfList(given, 'deployments', deployments, { idOf: ({ environment }) => environment });
    },
  }),
  call('PUT /components/:name/deployments/:environment', {
    ...{ id: 'deploy', summary: 'Deploys a version, a split or a rollout', ...changes, ...deployed },
    readsIfMatch: true,
    body: newDeployment,
    run: ({ orchestrator, name, environment: to, body, principal, condition }) =>
      orchestrator.components.deploy(name, { ...body, ...actorOf(principal), to } as never, condition),
  }),
  call('DELETE /components/:name/deployments/:environment', {
    ...{ id: 'undeploy', summary: 'Takes the version from an environment', ...changes },
    readsIfMatch: true,
    replies: { 200: 'Undeployed' },
    run: ({ orchestrator, name, environment, condition }) =>
      orchestrator.components.undeploy(name, environment, condition),
  }),
  call('POST /components/:name/deployments/:environment/rollback', {
    ...{ id: 'rollback', summary: 'Deploys the version before', ...changes, ...deployed },
    readsIfMatch: true,
    body: rollbackReason,
    run: ({ orchestrator, name, environment: to, body, principal, condition }) =>
      orchestrator.components.rollback(name, { ...body, ...actorOf(principal), to }, condition),
  }),
] as const;
