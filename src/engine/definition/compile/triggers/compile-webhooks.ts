/** Compiles the webhooks of an ensemble, and checks what the forms can't check: access is denied by default, secrets resolve, paths are unique. */

import type { EnsembleDefinition, WebhookTrigger } from '../../../ensemble/ensemble.ts';
import { keyOf } from '../../../signing/signature-schemes.ts';
import { methodsOf, type SignatureScheme, type Webhook, type WebhookAccess } from '../../../webhook/webhook.ts';
import type { Path } from '../../source/problem.ts';
import { compileSecrets } from '../config/compile-secrets.ts';
import { isAssumed, readSetting } from '../config/setting-text.ts';
import type { KnownNames } from '../names/outermost-names.ts';
import type { FlowContext } from '../resolve-agent.ts';
import { compileDelivery } from './compile-delivery.ts';

/** Paths of the service: `/api`, `/ensembles`, which works without the prefix, the links that send signals, and those that it will have. */
const OWN_PATH = /^\/(?:(?:api|ensembles|signals|dashboard|metrics)(?:\/|$)|$)/i;

/** @returns the webhooks. They are complete only if no problem was reported */
export function compileWebhooks(
  definition: EnsembleDefinition,
  known: Pick<KnownNames, 'signals'>,
  context: FlowContext,
): readonly Webhook[] {
  const { report, dropped } = context;
  const seen = new Map<string, number>();
  const webhooks: Webhook[] = [];
  definition.trigger?.forEach((trigger, i) => {
    if (trigger.type !== 'webhook') return;
    const path: Path = ['trigger', i];
    const access = compileAccess(trigger, path, context);
    const delivery = compileDelivery(trigger, path, known, context);
    if (dropped([...path, 'path'])) return;
    if (OWN_PATH.test(trigger.path)) {
      const message = `\`${trigger.path}\` belongs to the service; use \`/webhooks/...\``;
      report({ path: [...path, 'path'], message });
    }
    if (dropped([...path, 'methods'])) return;
    const methods = methodsOf(trigger);
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
    if (access?.type === 'signature' && access.scheme !== 'twilio') warnOfBodiless(methods, path, context);
    const { maxBodyBytes, accept = ['json'] } = trigger;
    const isAsync = trigger.async === true;
    if (access) webhooks.push({ path: trigger.path, methods, access, isAsync, maxBodyBytes, accept, delivery });
  });
  return webhooks;
}

/** What GET and HEAD give an execution is in the query, which these signatures don't cover. */
function warnOfBodiless(methods: readonly string[], path: Path, { report }: FlowContext): void {
  methods.forEach((method, m) => {
    if (method !== 'GET' && method !== 'HEAD') return;
    const message = `the signature covers the body, and ${method} has none: who sees a signed request can send it with another query`;
    report({ path: [...path, 'methods', m], message, warning: true });
  });
}

/** @returns undefined if nobody may call it */
function compileAccess(trigger: WebhookTrigger, path: Path, context: FlowContext): WebhookAccess | undefined {
  const { report, dropped } = context;
  const { auth } = trigger;
  if (dropped([...path, 'auth']) || dropped([...path, 'public'])) return undefined;
  if (!auth) {
    if (trigger.public === true) return { type: 'public' };
    report({ path, message: 'needs `auth`, or `public: true` to let anyone in' });
    return undefined;
  }
  if (trigger.public === true) {
    report({
      path: [...path, 'public'],
      key: true,
      message: '`public: true` and `auth` are both given; keep one of them',
    });
  }
  return compileAuth(auth, [...path, 'auth'], context);
}

/** The form has checked it. */
type Secrets = string | readonly string[] | undefined;
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

function compileAuth(auth: Auth, path: Path, context: FlowContext): WebhookAccess | undefined {
  const { type } = auth;
  const { required, optional } = AUTH_KEYS[type];
  for (const key of required) {
    if (auth[key] === undefined) {
      context.report({ path: [...path, key], message: `\`${key}\` is required for \`type: ${type}\`` });
    }
  }
  for (const key of Object.keys(auth)) {
    if (key === 'type' || required.includes(key) || optional.includes(key)) continue;
    context.report({
      path: [...path, key],
      key: true,
      message: `\`${key}\` is not for \`type: ${type}\`; remove it`,
    });
  }
  if (type === 'oauth') return compileOauth(auth, path, context);
  const secrets = compileSecrets(auth.secret as Secrets, [...path, 'secret'], context, {
    emptiness: 'which would let anyone in',
    problem(secret) {
      if (type === 'basic' && !/^[^:]+:./s.test(secret))
        return 'must have the form `username:password` for `type: basic`';
      if (type === 'bearer' && /\s/.test(secret))
        return 'must have no blanks for `type: bearer`: no header can hold them';
      return undefined;
    },
  });
  // An editor and `webhook list` do without secrets: then no request fits.
  if (secrets.length === 0 && !context.host.lenient) return undefined;
  if (type !== 'signature') return { type, secrets };
  const { scheme = 'service' } = auth as { readonly scheme?: SignatureScheme };
  for (const secret of secrets) {
    if (isAssumed(secret) || keyOf(scheme, secret)) continue;
    const message = `must be a secret in base64, such as \`whsec_...\`, for \`scheme: ${scheme}\``;
    context.report({ path: [...path, 'secret'], message });
  }
  return { type, scheme, secrets };
}

/** Keys that came over http could be anyone's. */
const ISSUER = /^(?:https:\/\/[^\s?#]+|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/][^\s?#]*)?)$/;

function compileOauth(auth: Auth, path: Path, context: FlowContext): WebhookAccess | undefined {
  const read = (key: 'issuer' | 'audience') =>
    typeof auth[key] === 'string' ? readSetting(auth[key], `\`${key}\``, [...path, key], context) : undefined;
  const [issuer, audience] = [read('issuer'), read('audience')];
  if (typeof issuer !== 'string' || typeof audience !== 'string')
    return context.host.lenient ? { type: 'oauth', issuer: '', audience: '' } : undefined;
  if (!isAssumed(issuer) && !ISSUER.test(issuer)) {
    const message =
      'must be the `https` URL of the issuer, as in the `iss` of its tokens, such as `https://login.example`; `http` is for localhost';
    context.report({ path: [...path, 'issuer'], message });
  }
  if (audience.trim() === '') context.report({ path: [...path, 'audience'], message: 'must not be empty' });
  return { type: 'oauth', issuer, audience };
}
