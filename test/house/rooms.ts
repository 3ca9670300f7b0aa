/** Which room of the house a source file stands in, and what each room may import. ARCHITECTURE.md draws the same picture. */

/** Files right under `src/`, each a room of its own: those that put the parts together, those that read a project folder, the doors. */
const COMPOSITION = [
  'define',
  'steps',
  'options',
  'config',
  'load-definitions',
  'restore-definitions',
  'ensembles',
  'new-execution',
  'children',
  'runner',
  'signals',
  'signal-links',
  'executions',
  'drive-schedule',
  'schedules',
  'orchestrator',
] as const;
/** Entries with one host or one family of adapters each; a library that one needs is an optional peer dependency. */
const ADAPTER_ENTRIES = [
  ...['deno', 'bun', 'workers'],
  ...['sqlite', 'postgres', 'redis', 'cloudflare', 'smtp', 's3', 'pdf', 'ai', 'mcp', 'git'],
];
const PROJECT = ['check-project', 'load-project'] as const;

const OUTSIDE_OF_ENGINE = ['basis', 'model', 'ports'] as const;
const ENGINE_UP_TO_EXPRESSION = [...OUTSIDE_OF_ENGINE, 'signing', 'expression'] as const;
const ENGINE = [...ENGINE_UP_TO_EXPRESSION, 'components', 'definition', 'access', 'execution', 'notification'] as const;

export interface Rule {
  /** Rooms that may be imported, beside the room itself. A name that ends in `/` means every room under it. */
  readonly may: readonly string[];
  /** Rooms of which only types may be imported. */
  readonly types?: readonly string[];
}

/** One line a room, in the order in which imports point: what stands below may import what stands above, never the other way. */
export const RULES: Readonly<Record<string, Rule>> = {
  basis: { may: [] },
  model: { may: ['basis'] },
  ports: { may: ['basis', 'model'] },
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
  steps: { may: [], types: ['basis', 'model'] },
  options: { may: ENGINE, types: ['define', 'operations/'] },
  config: { may: ['basis', 'options'], types: ['define'] },
  'load-definitions': { may: [...ENGINE, 'define', 'options'] },
  'restore-definitions': { may: [...ENGINE, 'load-definitions'], types: ['define'] },
  ensembles: { may: [...ENGINE, 'options', 'load-definitions'] },
  'new-execution': { may: ENGINE },
  children: { may: [...ENGINE, 'new-execution'], types: ['load-definitions'] },
  runner: { may: [...ENGINE, 'options', 'load-definitions', 'children', 'new-execution'] },
  signals: { may: [...ENGINE, 'options'] },
  'signal-links': { may: ENGINE },
  executions: { may: [...ENGINE, 'options', 'load-definitions', 'runner', 'signals'] },
  'drive-schedule': { may: ENGINE, types: ['load-definitions'] },
  schedules: { may: [...ENGINE, 'drive-schedule', 'new-execution'], types: ['load-definitions', 'runner'] },
  orchestrator: { may: [...ENGINE, ...COMPOSITION, 'operations/', 'adapters/'] },
  'check-project': { may: [...ENGINE, ...COMPOSITION, 'adapters/'] },
  'load-project': { may: [...ENGINE, ...COMPOSITION, 'check-project', 'adapters/'] },

  'http-handlers': { may: [...OUTSIDE_OF_ENGINE, 'signing'], types: COMPOSITION },

  index: { may: [...ENGINE, ...COMPOSITION, 'operations/', 'adapters/', 'http-handlers'] },
  testing: { may: [...OUTSIDE_OF_ENGINE, ...COMPOSITION, 'adapters/'] },
  node: { may: [...OUTSIDE_OF_ENGINE, ...COMPOSITION, ...PROJECT, 'adapters/', 'http-handlers'] },

  ...Object.fromEntries(ADAPTER_ENTRIES.map((entry) => [entry, { may: [...OUTSIDE_OF_ENGINE, 'adapters/'] }])),

  'cli/start': {
    may: [...OUTSIDE_OF_ENGINE, 'definition', ...COMPOSITION, ...PROJECT, 'index', 'node', 'sqlite', 'postgres'],
  },
  cli: { may: ['basis', 'model', 'cli/start'], types: COMPOSITION },
};

/**
 * The room of a file: `basis` for the files right under `engine/`; `operations/api` for `operations/api.ts` and for what stands in
 * `operations/api/`; `cli/start` for the one file of the command line that opens the library.
 */
export function roomOf(path: string): string {
  const parts = path.replace(/\.ts$/, '').split('/');
  const [first, second] = parts as [string, string | undefined];
  if (path === 'cli/start.ts') return 'cli/start';
  if (first === 'engine') return parts.length === 2 ? 'basis' : (second as string);
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
  const listed = (rooms: readonly string[] = []) =>
    rooms.some((room) => room === to || (room.endsWith('/') && to.startsWith(room)));
  return rule !== undefined && (listed(rule.may) || (typeOnly && listed(rule.types)));
}
