/** Which layer a source file is in, and what each layer may import. ARCHITECTURE.md draws the same picture. */

/** The folders of `engine/` that are a noun each: its records, its ports (`<name>.port.ts`), and in `rules/` what needs ports. */
const NOUNS: readonly string[] = [
  ...['access', 'component', 'delivery', 'ensemble', 'events', 'execution', 'host', 'operation', 'schedule'],
  ...['signal', 'storage', 'webhook'],
];

/** The pure core that everything may use: JSON, errors, the records of nouns, their ports. */
const CORE = ['base', 'records', 'ports'] as const;
const LANGUAGE = [...CORE, 'signing', 'json-schema', 'expression', 'compiled'] as const;
const DEFINITION = [
  ...['definition/source', 'definition/forms', 'definition/read', 'definition/types', 'definition/compile'],
] as const;
const ENGINE = [...LANGUAGE, ...DEFINITION, 'interpreter', 'running', 'events/rules', 'access/rules'] as const;
export interface Rule {
  /** Layers that may be imported, besides the layer itself. A name that ends in `/` means every layer under it. */
  readonly may: readonly string[];
  /** Layers of which only types may be imported. */
  readonly types?: readonly string[];
}

/** An entry with one host, one family of adapters, or what authors of adapters need. */
const ADAPTER_ENTRY: Rule = { may: [...CORE, 'running', 'adapters/'] };

/** One line a layer, in the order in which imports point: a layer may import those above it, never those below. */
export const RULES: Readonly<Record<string, Rule>> = {
  base: { may: [] },
  records: { may: ['base'] },
  ports: { may: ['base', 'records'] },
  signing: { may: CORE },
  'json-schema': { may: CORE },
  expression: { may: CORE },
  compiled: { may: [...CORE, 'json-schema', 'expression'] },
  'definition/source': { may: CORE },
  'definition/forms': { may: [...CORE, 'json-schema', 'definition/source'] },
  'definition/read': { may: [...CORE, 'definition/source', 'definition/forms'] },
  'definition/types': { may: [...LANGUAGE, 'definition/source', 'definition/forms'] },
  'definition/compile': {
    may: [...LANGUAGE, 'definition/source', 'definition/forms', 'definition/read', 'definition/types'],
  },
  'events/rules': { may: CORE },
  interpreter: { may: LANGUAGE },
  'access/rules': { may: CORE },
  running: { may: CORE },

  'operations/': { may: [...CORE, 'expression', 'json-schema'] },
  'adapters/': { may: [...CORE, 'json-schema'] },
  'adapters/embedded-engine': { may: [...CORE, 'running'] },
  'adapters/threads': { may: CORE },
  'adapters/http': { may: CORE },
  'adapters/otel': { may: [...CORE, 'adapters/http'] },
  'adapters/pdf': { may: [...CORE, 'json-schema', 'adapters/threads'] },
  'adapters/sandbox': { may: [...CORE, 'json-schema', 'adapters/threads'] },
  'adapters/tool-servers': { may: [...CORE, 'signing', 'json-schema'] },

  authoring: { may: CORE, types: ['operations/'] },
  orchestrator: { may: [...ENGINE, 'operations/', 'adapters/'], types: ['authoring'] },
  project: { may: [...CORE, ...DEFINITION, 'orchestrator', 'adapters/'], types: ['authoring'] },
  'http-handlers': { may: [...CORE, 'signing', 'access/rules'], types: ['orchestrator'] },
  dashboard: { may: ['base', 'records'], types: ['access/rules', 'orchestrator', 'http-handlers'] },
  conformance: { may: [...CORE, 'running', 'adapters/', 'testing-kit'], types: ['orchestrator', 'authoring'] },
  'testing-kit': { may: [...CORE, 'running', 'adapters/'], types: ['orchestrator', 'authoring'] },

  'test-files': {
    may: [...CORE, ...DEFINITION, 'json-schema', 'expression', 'orchestrator', 'project', 'adapters/', 'testing-kit'],
    types: ['authoring'],
  },

  index: { may: [...ENGINE, 'authoring', 'orchestrator', 'project', 'operations/', 'adapters/', 'http-handlers'] },
  'entries/dashboard': { may: ['http-handlers'] },
  'entries/conformance': { may: [...CORE, 'orchestrator', 'conformance', 'testing-kit'] },
  'entries/testing': { may: [...CORE, 'authoring', 'orchestrator', 'adapters/', 'testing-kit'] },
  'entries/node': {
    may: [...CORE, 'orchestrator', 'project', 'adapters/', 'http-handlers', 'test-files', 'entries/testing'],
  },
  'entries/workers': { may: [...CORE, 'orchestrator', 'adapters/'] },
  'entries/': ADAPTER_ENTRY,
  ...{ 'entries/git': ADAPTER_ENTRY, 'entries/sqlite': ADAPTER_ENTRY, 'entries/postgres': ADAPTER_ENTRY },

  'cli/schema': { may: [...CORE, 'json-schema', 'definition/forms'] },
  'cli/start': {
    may: [
      ...[...CORE, ...DEFINITION, 'access/rules', 'signing', 'orchestrator', 'project', 'cli/schema'],
      ...['index', 'entries/node', 'entries/git', 'entries/sqlite', 'entries/postgres'],
      ...['test-files', 'entries/testing'],
    ],
  },
  cli: { may: ['base', 'records', 'cli/start'], types: ['orchestrator', 'http-handlers'] },
};

/**
 * The layer of a file: `base` for `engine/base/`, `ports` and `records` for the two kinds of files of a noun, `definition/forms` for `engine/definition/forms/`, `operations/api` for
 * `operations/api/`, `adapters/storage` for every storage, `cli/schema`, and `cli/start` for the one file of the command line that opens the
 * library.
 */
export function layerOf(path: string): string {
  const parts = path.replace(/\.tsx?$/, '').split('/');
  const [first, second, third] = parts as [string, string | undefined, string | undefined];
  if (path === 'cli/start.ts') return 'cli/start';
  if (path.startsWith('cli/schema/')) return 'cli/schema';
  if (first === 'engine' && NOUNS.includes(second as string)) {
    if (third === 'rules') return `${second}/rules`;
    return path.endsWith('.port.ts') ? 'ports' : 'records';
  }
  if (first === 'engine') return second === 'definition' ? `definition/${third}` : (second as string);
  if (['operations', 'adapters', 'entries'].includes(first)) return `${first}/${second}`;
  return first;
}

/** @returns the rule for a layer; undefined when none is written */
export function ruleFor(layer: string): Rule | undefined {
  return RULES[layer] ?? RULES[`${layer.split('/')[0]}/`];
}

/** Whether the rule lets `from` import `to`; `typeOnly` when no code comes with the import. */
export function mayImport(from: string, to: string, typeOnly: boolean): boolean {
  if (from === to) return true;
  const rule = ruleFor(from);
  const listed = (layers: readonly string[] = []) =>
    layers.some((layer) => layer === to || (layer.endsWith('/') && to.startsWith(layer)));
  return rule !== undefined && (listed(rule.may) || (typeOnly && listed(rule.types)));
}
