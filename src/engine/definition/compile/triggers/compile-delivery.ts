/** Compiles the signal that a webhook sends to an execution, and the text by which it finds the execution. */

import type { Json } from '../../../base/json/json.ts';
import { suggestName } from '../../../base/suggest-name.ts';
import { quoted } from '../../../base/wording.ts';
import type { WebhookTrigger } from '../../../ensemble/ensemble.ts';
import { splitText } from '../../../expression/compile/compile-text.ts';
import type { NameResolver } from '../../../expression/compile/compiled-expression.ts';
import type { Evaluation } from '../../../expression/evaluation.ts';
import { ExpressionSyntaxError } from '../../../expression/syntax/expression-syntax-error.ts';
import { DEFAULT_BUDGET } from '../../../expression/syntax/limits.ts';
import type { FindScope, WebhookDelivery } from '../../../webhook/webhook.ts';
import type { Path } from '../../source/problem.ts';
import type { KnownNames } from '../names/outermost-names.ts';
import type { FlowContext } from '../resolve-agent.ts';

interface RequestScope extends Evaluation {
  readonly request: FindScope;
}

const READABLE = ['body', 'query', 'headers'] as const;

const NAMES: NameResolver<RequestScope> = {
  hyphenated: [],
  resolve(name, [first]) {
    const part = READABLE.find((one) => one === name);
    if (part === undefined) {
      const problem = `${quoted(name)} can't be read here, only \`body\`, \`query\` and \`headers\` of the request`;
      const suggestion = name === 'input' ? 'body' : suggestName(name, READABLE);
      return { problem, ...(suggestion !== undefined && { suggestion }) };
    }
    if (part !== 'headers' || typeof first !== 'string') return { read: ({ request }) => request[part], consumed: 0 };
    const key = first.toLowerCase();
    const read = ({ request: { headers } }: RequestScope) =>
      Object.hasOwn(headers, key) ? (headers[key] as Json) : null;
    return { read, consumed: 1 };
  },
};

/** @returns undefined for a webhook that starts executions */
export function compileDelivery(
  { signal, find, orStart }: WebhookTrigger,
  path: Path,
  { signals }: Pick<KnownNames, 'signals'>,
  { report, dropped }: FlowContext,
): WebhookDelivery | undefined {
  if (signal === undefined) {
    for (const [key, value] of Object.entries({ find, orStart })) {
      if (value === undefined || dropped([...path, 'signal'])) continue;
      report({ path: [...path, key], key: true, message: `\`${key}\` needs \`signal\`, the signal to send` });
    }
    return undefined;
  }
  if (signals && !signals.has(signal)) {
    const message = `no \`wait\` of this flow waits for the signal ${quoted(signal)}`;
    report({ path: [...path, 'signal'], message, suggestion: suggestName(signal, signals) });
  }
  const { tag, id } = find ?? {};
  if (dropped([...path, 'find'])) return undefined;
  if ((tag === undefined) === (id === undefined)) {
    const message =
      tag === undefined
        ? '`signal` needs `find: { tag: ... }` or `find: { id: ... }`, which says who gets it'
        : '`tag` and `id` are both given; keep one of them';
    report({ path: find ? [...path, 'find'] : path, message });
    return undefined;
  }
  const by = tag === undefined ? 'id' : 'tag';
  const text = (tag ?? id) as string;
  try {
    const { literals, parts } = splitText<RequestScope>(text, { names: NAMES });
    if (parts.length === 0) {
      report({ path: [...path, 'find', by], message: 'must read the request, such as `order=${body.id}`' });
    }
    const findTarget: WebhookDelivery['findTarget'] = (request, now) => {
      const scope = { request, budget: DEFAULT_BUDGET, random: () => 0, now: () => now, uuid: () => '' };
      const values = parts.map(({ evaluate }) => evaluate(scope));
      // Requests that lack the field would all name the same execution.
      if (values.some((value) => value === null || value === '' || typeof value === 'object')) return undefined;
      return literals.map((literal, i) => literal + String(values[i] ?? '')).join('');
    };
    return { signal, by, text, findTarget, orStart: orStart === true };
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    const { message, index: offset, length, suggestion } = error;
    report({ path: [...path, 'find', by], message, offset, length, suggestion });
    return undefined;
  }
}
