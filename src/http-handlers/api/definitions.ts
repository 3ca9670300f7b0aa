/** `/ensembles...` and `/agents...`: lists, shows, creates, changes and deletes definitions. */

import type { DefinitionItem, Definitions } from '../../orchestrator/definitions/definitions.ts';
import { hasScope } from '../../engine/model/token.ts';
import type { HttpCall } from '../call.ts';
import { etagOf, readIfMatch } from '../etag.ts';
import { locationOf } from '../location.ts';
import { withDefinition } from '../read-definition.ts';
import { readName } from '../read-id.ts';
import { readFlag, readLimit, readQuery } from '../read-query.ts';
import type { Reply } from '../reply.ts';
import { refuseContent } from './refuse-content.ts';

type Kind = 'ensemble' | 'agent';
type Run = (call: HttpCall) => Promise<Reply>;

/** The functions of the routes of one kind. */
export interface DefinitionRoutes {
  readonly list: Run;
  readonly create: Run;
  readonly get: Run;
  readonly update: Run;
  readonly remove: Run;
  readonly activate: Run;
  readonly deactivate: Run;
}

export function definitionRoutes(kind: Kind): DefinitionRoutes {
  const of = ({ parts }: HttpCall) => parts.orchestrator[`${kind}s`] as unknown as Definitions<string, Item>;
  return {
    async list(call) {
      const { limit, cursor, active } = readQuery(call.request.query, ['limit', 'cursor', 'active']);
      return {
        status: 200,
        json: await of(call).list({ limit: readLimit(limit), cursor, active: readFlag(active, 'active') }),
      };
    },
    async create(call) {
      const item = await withDefinition(call, (definition) => of(call).create(definition, mayStart(call)));
      return {
        status: 201,
        json: item,
        headers: { ...locationOf(call, `/${kind}s/${item.name}`), ...etagOf(item.version) },
      };
    },
    get: async (call) => itemReply(await of(call).get(readName(call, kind))),
    async update(call) {
      const name = readName(call, kind);
      const options = readIfMatch(call.request);
      return itemReply(
        await withDefinition(call, (definition) =>
          of(call).update(name, definition, { ...options, ...mayStart(call) }),
        ),
      );
    },
    async remove(call) {
      return { status: 200, json: await of(call).delete(readName(call, kind), readIfMatch(call.request)) };
    },
    async activate(call) {
      const name = readName(call, kind);
      const options = readIfMatch(call.request);
      await refuseContent(call);
      return itemReply(await of(call).activate(name, options));
    },
    async deactivate(call) {
      const name = readName(call, kind);
      const options = readIfMatch(call.request);
      await refuseContent(call);
      return itemReply(await of(call).deactivate(name, options));
    },
  };
}

/** A token that may not start ensembles stores none that others start. */
function mayStart({ principal }: HttpCall): { readonly webhooks: boolean } {
  return { webhooks: principal === undefined || hasScope(principal, 'execute:ensembles') };
}

type Item = DefinitionItem<object>;

function itemReply(item: Item): Reply {
  return { status: 200, json: item, headers: etagOf(item.version) };
}
