/** Checks the parts of webhooks that the forms can't check: access is denied by default, secrets resolve, paths are unique. */

import type { EnsembleDefinition, WebhookTrigger } from '../../model/ensemble.ts';
import type { Path } from '../source/problem.ts';
import type { FlowContext } from './resolve-agent.ts';
import { readSetting } from './setting-text.ts';

/** Paths of the API: `/api`, and `/ensembles`, which works without the prefix. */
const API_PATH = /^\/(api|ensembles)(\/|$)/i;
const DEFAULT_METHODS = ['POST'];

export function checkTriggers(definition: EnsembleDefinition, context: FlowContext): void {
  const { report, dropped } = context;
  const seen = new Map<string, number>();
  definition.trigger?.forEach((trigger, i) => {
    if (trigger.type !== 'webhook') return;
    const path: Path = ['trigger', i];
    checkAccess(trigger, path, context);
    if (dropped([...path, 'path'])) return;
    if (API_PATH.test(trigger.path)) {
      report({ path: [...path, 'path'], message: `\`${trigger.path}\` belongs to the API; use \`/webhooks/...\`` });
    }
    if (dropped([...path, 'methods'])) return;
    const methods = trigger.methods ?? DEFAULT_METHODS;
    methods.forEach((method, m) => {
      const route = `${method} ${trigger.path}`;
      const other = seen.get(route);
      if (other === i)
        report({ path: [...path, 'methods', m], message: `\`${method}\` is given twice in \`methods\`; remove one` });
      else if (other !== undefined) {
        report({
          path: [...path, 'path'],
          message: `${route} is taken by trigger[${other}]; two triggers can't share a method and a path`,
        });
      }
      seen.set(route, other ?? i);
    });
  });
}

function checkAccess(trigger: WebhookTrigger, path: Path, context: FlowContext): void {
  const { report, dropped } = context;
  const { auth } = trigger;
  if (dropped([...path, 'auth']) || dropped([...path, 'public'])) return;
  if (!auth && trigger.public !== true) {
    report({ path, message: 'needs `auth`, or `public: true` to let anyone in' });
    return;
  }
  if (!auth) return;
  if (trigger.public === true) {
    report({
      path: [...path, 'public'],
      key: true,
      message: '`public: true` and `auth` are both given; keep one of them',
    });
  }
  checkAuth(auth, [...path, 'auth'], context);
}

type Auth = NonNullable<WebhookTrigger['auth']>;

// The settings of each type of credentials, besides `type`.
const AUTH_KEYS: Readonly<
  Record<Auth['type'], { readonly required: readonly string[]; readonly optional: readonly string[] }>
> = {
  bearer: { required: ['secret'], optional: [] },
  basic: { required: ['secret'], optional: [] },
  signature: { required: ['secret'], optional: ['scheme'] },
  oauth: { required: ['issuer', 'audience'], optional: [] },
};

function checkAuth(auth: Auth, path: Path, context: FlowContext): void {
  const { required, optional } = AUTH_KEYS[auth.type];
  for (const key of required) {
    if (auth[key] === undefined) {
      context.report({ path: [...path, key], message: `\`${key}\` is required for \`type: ${auth.type}\`` });
    }
  }
  for (const key of Object.keys(auth)) {
    if (key === 'type' || required.includes(key) || optional.includes(key)) continue;
    context.report({
      path: [...path, key],
      key: true,
      message: `\`${key}\` is not for \`type: ${auth.type}\`; remove it`,
    });
  }
  if (!required.includes('secret') || auth.secret === undefined) return;
  const at: Path = [...path, 'secret'];
  if (typeof auth.secret === 'string') checkSecret(auth.secret, auth.type, at, context);
  else {
    for (const [i, secret] of (auth.secret as readonly string[]).entries())
      checkSecret(secret, auth.type, [...at, i], context);
  }
}

// The secret must be known at load: a webhook with an empty secret would let anyone in.
function checkSecret(secret: string, type: Auth['type'], path: Path, context: FlowContext): void {
  const value = readSetting(secret, 'a secret', path, context);
  if (value === undefined) return;
  if (typeof value !== 'string' || value.trim() === '') {
    context.report({ path, message: 'is an empty secret, which would let anyone in; set one' });
  } else if (type === 'basic' && value.indexOf(':') < 1) {
    context.report({ path, message: 'must have the form `username:password` for `type: basic`' });
  }
}
