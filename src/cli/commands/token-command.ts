/** `ensemble token`: creates, lists and revokes API tokens, in a store or on a running server. */

import { PLANS, type PlanName } from '../../engine/access/plan.ts';
import { SCOPES, type TokenScope } from '../../engine/access/token.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import { brandOf } from '../service/open-store.ts';
import type { ServiceHost } from '../service/service.ts';
import * as start from '../start.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { count, oneLine, printJson } from '../terminal/text.ts';
import { formatDistance, formatInstant } from '../terminal/times.ts';

export interface TokenCreateOptions extends PlaceOptions {
  readonly name: string;
  readonly scope: readonly string[];
  readonly expiresIn?: string;
  readonly plan?: string;
  readonly json?: boolean;
}

/** Prints the token's value on stdout, and its name, scopes and expiry on stderr. */
export async function createToken(options: TokenCreateOptions, output: Output, host: ServiceHost): Promise<number> {
  const expiresIn = readSeconds(options.expiresIn);
  if (options.name.length < 1 || options.name.length > 200)
    throw wrongUsage(`--name must have 1 to 200 characters, not ${options.name.length}`);
  const plan = options.plan === undefined ? undefined : oneOf('--plan', options.plan, PLANS);
  const wanted = {
    name: options.name,
    scopes: options.scope.map((scope) => oneOf<TokenScope>('--scope', scope, SCOPES)),
    ...(expiresIn !== undefined && { expiresIn }),
    ...(plan !== undefined && { plan: plan as PlanName }),
  };
  if (wanted.scopes.length === 0) throw wrongUsage(`--scope needs at least one of ${SCOPES.join(', ')}`);
  const created = await withService(options, host, ({ tokens }) => tokens.create(wanted), { create: true });
  if (options.json) {
    output.print(`${printJson(created)}\n`);
    return 0;
  }
  const { id, name, scopes, expiresAt } = created;
  const until = expiresAt === undefined ? 'never expires' : `expires ${formatInstant(expiresAt)}`;
  output.print(`${oneLine(created.token)}\n`);
  output.say(
    `${output.colors.green('✓')} token ${oneLine(`${name} (${id}): ${scopes.join(', ')}; plan ${created.plan}`)}; ${until}\n`,
  );
  output.say('  Its value is shown only this once.\n');
  return 0;
}

export interface TokenNewOptions {
  readonly dir?: string;
  readonly json?: boolean;
}

/** Prints a value for a token on stdout, and its hash on stderr. */
export async function newToken(options: TokenNewOptions, output: Output, { cwd }: ServiceHost): Promise<number> {
  const made = start.newToken(await brandOf(cwd, options.dir));
  if (options.json) {
    output.print(`${printJson(made)}\n`);
    return 0;
  }
  output.print(`${made.token}\n`);
  output.say(`  SHA-256 for tokens.import(): ${made.hash}\n`);
  output.say('  Nothing is stored. `ensemble serve` accepts the value when ENSEMBLE_TOKEN holds it.\n');
  return 0;
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'NAME', shrinkTo: 8 },
  { title: 'SCOPES', shrinkTo: 12 },
  { title: 'EXPIRES' },
  { title: 'LAST USED' },
];

export interface TokenListOptions extends PlaceOptions {
  readonly json?: boolean;
}

export async function listTokens(options: TokenListOptions, output: Output, host: ServiceHost): Promise<number> {
  const tokens = await withService(options, host, (service) => service.tokens.list());
  if (options.json) {
    output.print(`${printJson({ tokens })}\n`);
    return 0;
  }
  if (tokens.length === 0) {
    output.say('no tokens; create one with: ensemble token create --name NAME --scope SCOPE\n');
    return 0;
  }
  const now = Date.now();
  const rows = tokens.map(({ id, name, scopes, expiresAt, lastUsed }) => [
    id,
    name,
    scopes.join(', '),
    expiresAt === undefined ? 'never' : expiresAt <= now ? 'expired' : formatDistance(expiresAt, now),
    // Stored with a resolution of a minute.
    lastUsed === undefined ? 'never' : now - lastUsed < 120_000 ? 'just now' : formatDistance(lastUsed, now),
  ]);
  output.print(formatTable(COLUMNS, rows, terminalWidth(host.process)));
  return 0;
}

export async function revokeToken(
  id: string,
  options: TokenListOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const revoked = await withService(options, host, ({ tokens }) => tokens.revoke(id));
  if (options.json) output.print(`${printJson(revoked)}\n`);
  else output.say(`${output.colors.green('✓')} token ${oneLine(revoked.id)} is revoked\n`);
  return 0;
}

/** The longest lifetime that the service accepts. */
const MAX_SECONDS = 315_360_000;

function readSeconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,9}$/.test(text)) {
    if (Number(text) <= MAX_SECONDS) return Number(text);
    throw wrongUsage(
      `--expires-in must be at most ${MAX_SECONDS} (ten years); leave it out for a token that never expires`,
    );
  }
  throw wrongUsage(
    `--expires-in must be a whole number of seconds, such as 86400 for a day, not ${JSON.stringify(text)}`,
  );
}

function oneOf<T extends string>(option: string, given: string, known: readonly T[]): T {
  if ((known as readonly string[]).includes(given)) return given as T;
  const near = suggestName(given, known);
  const hint =
    near === undefined
      ? `; the ${count(known.length, option.slice(2))}: ${known.join(', ')}`
      : `; did you mean ${near}?`;
  throw wrongUsage(`there is no ${option.slice(2)} ${JSON.stringify(given)}${hint}`);
}
