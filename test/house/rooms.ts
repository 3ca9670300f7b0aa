/** Which room of the house a source file stands in, and what each room may import. ARCHITECTURE.md draws the same picture. */

/** Files right under `src/`, each a room of its own: those that put the parts together, those that read a project folder, the doors. */
const COMPOSITION = ['define', 'config', 'options', 'load-definitions', 'executions', 'runner', 'orchestrator'] as const;
const PROJECT = ['check-project', 'load-project'] as const;
const DOORS = ['index', 'node', 'testing'] as const;

const LEAVES = ['errors', 'json', 'suggest-name'] as const;
const ENGINE_UP_TO_EXPRESSION = [...LEAVES, 'model', 'ports', 'signing', 'expression'] as const;
const ENGINE = [...ENGINE_UP_TO_EXPRESSION, 'components', 'definition', 'access', 'execution', 'notification'] as const;
const OUTSIDE_OF_ENGINE = [...LEAVES, 'model', 'ports'] as const;

export interface Rule {
  /** Rooms that may be imported, beside the room itself. A name that ends in `/` means every room under it. */
  readonly may: readonly string[];
  /** Rooms of which only types may be imported. */
  readonly types?: readonly string[];
}

/** One line a room, in the order in which imports point: what stands below may import what stands above, never the other way. */
export const RULES: Readonly<Record<string, Rule>> = {
  errors: { may: [] },
  json: { may: [] },
  'suggest-name': { may: [] },
  model: { may: LEAVES },
  ports: { may: [...LEAVES, 'model'] },
  signing: { may: OUTSIDE_OF_ENGINE },
  expression: { may: [...OUTSIDE_OF_ENGINE, 'signing'] },
  components: { may: ENGINE_UP_TO_EXPRESSION },
  definition: { may: [...ENGINE_UP_TO_EXPRESSION, 'components'] },
  access: { may: [...ENGINE_UP_TO_EXPRESSION, 'components', 'definition'] },
  execution: { may: [...ENGINE_UP_TO_EXPRESSION, 'components', 'definition', 'access'] },
  notification: { may: [...ENGINE_UP_TO_EXPRESSION, 'components', 'definition', 'access'] },

  'operations/': { may: ENGINE_UP_TO_EXPRESSION },
  'adapters/testing': { may: [...OUTSIDE_OF_ENGINE, 'adapters/'] },
  'adapters/': { may: OUTSIDE_OF_ENGINE },

  define: { may: ENGINE },
  options: { may: ENGINE, types: ['define', 'operations/'] },
  config: { may: [...LEAVES, 'options'], types: ['define'] },
  'load-definitions': { may: [...ENGINE, 'define', 'options'] },
  executions: { may: [...ENGINE, 'options'] },
  runner: { may: [...ENGINE, 'options', 'load-definitions', 'executions'] },
  orchestrator: { may: [...ENGINE, ...COMPOSITION, 'operations/', 'adapters/'] },

  'check-project': { may: [...ENGINE, ...COMPOSITION, 'adapters/'] },
  'load-project': { may: [...ENGINE, ...COMPOSITION, 'check-project', 'adapters/'] },

  index: { may: [...ENGINE, ...COMPOSITION, 'operations/', 'adapters/'] },
  testing: { may: [...OUTSIDE_OF_ENGINE, ...COMPOSITION, 'adapters/'] },
  node: { may: [...OUTSIDE_OF_ENGINE, ...COMPOSITION, ...PROJECT, 'adapters/'] },

  cli: { may: [...LEAVES, 'model'], types: [...COMPOSITION, 'definition'] },
  'cli/start': { may: [...LEAVES, 'model', 'definition', ...COMPOSITION, ...PROJECT, ...DOORS, 'cli'] },
};

/** Files that stand in another room than their folder says. */
const EXCEPTIONS: Readonly<Record<string, string>> = {};

/** @returns a room; `operations/api` for `operations/api.ts` and for what stands in `operations/api/` */
export function roomOf(path: string): string {
  const exception = EXCEPTIONS[path];
  if (exception !== undefined) return exception;
  const parts = path.replace(/\.ts$/, '').split('/');
  const [first, second] = parts as [string, string | undefined];
  if (first === 'engine') return second as string;
  if (first === 'operations' || first === 'adapters') return `${first}/${second}`;
  return first;
}

/** @returns the rule for a room; undefined when nobody wrote one */
export function ruleFor(room: string): Rule | undefined {
  return RULES[room] ?? RULES[`${room.split('/')[0]}/`];
}

/** Whether the rule lets `from` import `to`; `typeOnly` when no code comes with the import. */
export function mayImport(from: string, to: string, typeOnly: boolean): boolean {
  if (from === to) return true;
  const rule = ruleFor(from);
  const listed = (rooms: readonly string[] = []) => rooms.some((room) => room === to || (room.endsWith('/') && to.startsWith(room)));
  return rule !== undefined && (listed(rule.may) || (typeOnly && listed(rule.types)));
}
