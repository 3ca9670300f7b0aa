/** The grammar of names and the words that the language keeps for itself. */

/** Names of ensembles, agents, results, inputs and outputs. */
export const NAME_PATTERN = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** What a name must look like, in words for messages. */
export const NAME_RULE = 'a letter, then up to 63 letters, digits, `_` or `-`';

/** Words that mean something in every expression, and so can't name a result. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  'input',
  'env',
  'headers',
  'trigger',
  'state',
  'execution',
  'item',
  'index',
  'error',
  'true',
  'false',
  'null',
]);

/** The operations that the seed names. */
export const SEED_OPERATIONS = ['think', 'api', 'code', 'storage', 'tools', 'email', 'sms', 'pdf'] as const;

/** The older form's step types, and the operation each one means; `Route` is a flow form of its own. */
export const OLDER_TYPES: Readonly<Record<string, string>> = {
  Function: 'code',
  API: 'api',
  Think: 'think',
  Data: 'storage',
  Email: 'email',
  Route: 'route',
};
