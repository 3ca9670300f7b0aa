/** The form of names, the reserved names, and the names of operations. */

/** Names of ensembles, agents, results, inputs and outputs. */
export const NAME_PATTERN = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** The form of a name, in words for messages. */
export const NAME_RULE = 'a letter, then up to 63 letters, digits, `_` or `-`';

const ALONE = 'agent:';

/** The name under which an agent runs alone. */
export function ensembleOfAgent(agent: string): string {
  return ALONE + agent;
}

/** The agent that ran alone. Undefined for an ensemble. */
export function agentAlone(ensemble: string): string | undefined {
  return ensemble.startsWith(ALONE) ? ensemble.slice(ALONE.length) : undefined;
}

/** Names that have a meaning in every expression, so no result can have them. */
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

/** The operations that the specification names. */
export const SPECIFIED_OPERATIONS = ['think', 'api', 'code', 'storage', 'tools', 'email', 'sms', 'pdf'] as const;

/** The step types of the older form, with the operation of each. `Route` is a form of a flow. */
export const OLDER_TYPES: Readonly<Record<string, string>> = {
  Function: 'code',
  API: 'api',
  Think: 'think',
  Data: 'storage',
  Email: 'email',
  Route: 'route',
};
