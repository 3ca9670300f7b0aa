/** Checks what the forms can't see of triggers and notifications: default deny, secrets that resolve, paths that collide. */

import { compileText } from '../expression/compile-text.ts';
import type { NameResolver } from '../expression/compiled-expression.ts';
import { ExpressionSyntaxError } from '../expression/expression-syntax-error.ts';
import type { EnsembleDefinition, WebhookTrigger } from '../model/ensemble.ts';
import type { Report } from './check-shape.ts';
import type { CompileHost } from './compile-host.ts';
import type { Path } from './problem.ts';
import type { Scope } from './scope.ts';
import { suggestName } from '../suggest-name.ts';

/** Paths that belong to the API. */
const API_PATH = /^\/api(\/|$)/i;

export function checkTriggers(definition: EnsembleDefinition, host: CompileHost, report: Report): void {
  const seen = new Set<string>();
  definition.trigger?.forEach((trigger, i) => {
    const path: Path = ['trigger', i];
    checkAccess(trigger, path, host, report);
    if (API_PATH.test(trigger.path)) report({ path: [...path, 'path'], message: 'lies under `/api`, which belongs to the API; use `/webhooks/...`' });
    for (const method of trigger.methods ?? ['POST']) {
      const route = `${method} ${trigger.path}`;
      if (seen.has(route)) report({ path, message: `is a second trigger for ${route}` });
      seen.add(route);
    }
  });
}

function checkAccess(trigger: WebhookTrigger, path: Path, host: CompileHost, report: Report): void {
  const { auth } = trigger;
  if (!auth && trigger.public !== true) {
    report({ path, message: 'needs `auth`, or `public: true` to let anyone in' });
    return;
  }
  if (!auth) return;
  const authPath = [...path, 'auth'];
  if (trigger.public === true) report({ path, message: 'has both `auth` and `public: true`; keep one of them' });
  if (auth.type === 'oauth') {
    for (const key of ['issuer', 'audience']) {
      if (auth[key] === undefined) report({ path: [...authPath, key], message: 'is required' });
    }
    return;
  }
  if (auth.secret === undefined) {
    report({ path: [...authPath, 'secret'], message: 'is required' });
    return;
  }
  const list = Array.isArray(auth.secret);
  const secrets = (list ? auth.secret : [auth.secret]) as readonly string[];
  secrets.forEach((secret, i) => {
    checkSecret(secret, list ? [...authPath, 'secret', i] : [...authPath, 'secret'], host, report);
  });
}

function checkSecret(secret: string, path: Path, host: CompileHost, report: Report): void {
  const names: NameResolver<Scope> = {
    hyphenated: [],
    resolve(name, [variable]) {
      if (name !== 'env' || typeof variable !== 'string') return { problem: 'a secret may read only `env.NAME`' };
      if (Object.hasOwn(host.env, variable)) return { read: () => host.env[variable] as string, consumed: 1 };
      if (host.lenient) return { read: () => 'unknown', consumed: 1 };
      const suggestion = suggestName(variable, Object.keys(host.env));
      const problem = `variable \`${variable}\` is neither in \`env\` nor in \`secrets\``;
      return suggestion === undefined ? { problem } : { problem, suggestion };
    },
  };
  try {
    const compiled = compileText(secret, { names });
    const value = compiled.evaluate({ budget: 1000, random: () => 0, now: () => 0, uuid: () => '' } as Scope);
    if (typeof value !== 'string' || value.trim() === '') report({ path, message: 'is an empty secret' });
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    report({ path, message: error.message, offset: error.index, length: error.length, suggestion: error.suggestion });
  }
}
