/** `/components...`: registers components, creates versions, and deploys them. The name of the token says who did it. */

import * as z from 'zod/mini';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import { COMPONENT_KINDS, compareVersions } from '../../engine/model/component.ts';
import { deploymentTag } from '../../engine/model/split.ts';
import type { Component, Components } from '../../orchestrator/components/components.ts';
import { noted } from '../body-fields.ts';
import type { HttpCall } from '../call.ts';
import { etagOf, readIfMatch } from '../etag.ts';
import { locationOf } from '../location.ts';
import { pageOfList } from '../page-of-list.ts';
import { readName } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import { readLimit, readQuery } from '../read-query.ts';
import type { Reply } from '../reply.ts';
import { refuseContent } from './refuse-content.ts';

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
  z.strictObject(Object.fromEntries(keys.map((key) => [key, z.optional(noted(z.unknown(), FIELDS[key] ?? {}))])));
export const newComponent = once(() => noted(body('name', 'kind', 'file', 'metadata'), { required: ['name', 'kind'] }));
export const componentChange = once(() => body('file', 'metadata'));
export const newVersion = once(() =>
  noted(body('version', 'content', 'message'), { required: ['version', 'content'] }),
);
export const newDeployment = once(() =>
  noted(body('version', 'split', 'by', 'guard', 'steps', 'every', 'message'), {
    anyOf: [{ required: ['version'] }, { required: ['split'] }],
  }),
);
export const rollbackReason = once(() => body('from', 'message'));

async function readBody<T>(call: HttpCall, shape: ReturnType<typeof body>): Promise<T> {
  return readShape(shape, await readJson(call), 'the body is not valid') as T;
}

const of = ({ parts }: HttpCall): Components => parts.orchestrator.components;
const actorOf = ({ principal }: HttpCall) => (principal ? { actor: principal.name } : {});

function itemReply(item: Component, status = 200): Reply {
  return { status, json: item, headers: etagOf(item.tag) };
}

export async function listComponents(call: HttpCall): Promise<Reply> {
  const { limit, cursor } = readQuery(call.request.query, ['limit', 'cursor']);
  return { status: 200, json: await of(call).list({ limit: readLimit(limit), cursor } as never) };
}

export async function createComponent(call: HttpCall): Promise<Reply> {
  const item = await of(call).register(await readBody(call, newComponent()));
  return { status: 201, json: item, headers: { ...locationOf(call, `/components/${item.name}`), ...etagOf(item.tag) } };
}

export async function getComponent(call: HttpCall): Promise<Reply> {
  return itemReply(await of(call).get(readName(call, 'component')));
}

export async function updateComponent(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'component');
  const options = readIfMatch(call.request);
  return itemReply(await of(call).update(name, await readBody(call, componentChange()), options));
}

export async function listVersions(call: HttpCall): Promise<Reply> {
  const versions = await of(call).versions(readName(call, 'component'));
  const order = { idOf: ({ version }: { readonly version: string }) => version };
  return pageOfList(call, 'versions', versions, { ...order, compare: (a, b) => compareVersions(b, a) });
}

export async function createVersion(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'component');
  const given = await readBody<object>(call, newVersion());
  const made = await of(call).createVersion(name, { ...given, ...actorOf(call) } as never);
  return { status: 201, json: made };
}

/** A version with its text, by its number, by `latest` or by an environment. */
export async function getVersion(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'component');
  const { kind } = await of(call).get(name);
  const { key } = readQuery(call.request.query, ['key']);
  const found = await of(call).resolve(
    `${kind}://${name}@${call.params.version ?? ''}`,
    key === undefined ? {} : { key },
  );
  return { status: 200, json: found };
}

export async function listDeployments(call: HttpCall): Promise<Reply> {
  const found = await of(call).deployments(readName(call, 'component'));
  // The `ETag` of each, for a change with `If-Match`.
  const deployments = found.map((one) => ({ ...one, tag: deploymentTag(one) }));
  return pageOfList(call, 'deployments', deployments, { idOf: ({ environment }) => environment });
}

/** `If-Match` is the `ETag` of the deployment: its version, or one for a split. */
export async function putDeployment(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'component');
  const { environment: to = '' } = call.params;
  const options = readIfMatch(call.request);
  const given = await readBody<object>(call, newDeployment());
  const made = await of(call).deploy(name, { ...given, ...actorOf(call), to } as never, options);
  return { status: 200, json: made, headers: etagOf(deploymentTag(made)) };
}

export async function deleteDeployment(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'component');
  const { environment = '' } = call.params;
  const options = readIfMatch(call.request);
  await refuseContent(call);
  return { status: 200, json: await of(call).undeploy(name, environment, options) };
}

export async function rollbackDeployment(call: HttpCall): Promise<Reply> {
  const name = readName(call, 'component');
  const { environment: to = '' } = call.params;
  const options = readIfMatch(call.request);
  const given = await readBody<object>(call, rollbackReason());
  const made = await of(call).rollback(name, { ...given, ...actorOf(call), to }, options);
  return { status: 200, json: made, headers: etagOf(deploymentTag(made)) };
}
