/** The vectors of definitions, and the host that they are compiled for. */

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { CompileHost } from '../../src/engine/definition/compile/triggers/compile-host.ts';
import { type AgentDefinition, defineOperation, type OrchestratorOptions } from '../../src/index.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';

// A Standard Schema that no known library created.
const plainConfig = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) =>
      (value as { size?: unknown }).size === 1
        ? { value: value as { size: number } }
        : { issues: [{ message: 'expected 1', path: [{ key: 'size' }] }] },
  },
};

/** New options: scripts `score` and `notify`, an operation `plain`, some variables and secrets. */
export function options(): OrchestratorOptions {
  return {
    scripts: { score: () => ({ value: 1 }), notify: () => null },
    operations: [defineOperation({ name: 'plain', config: plainConfig, run: () => null })],
    mail: { fake: { send: () => Promise.reject(new Error('no mail')) } },
    models: { fake: { generate: () => Promise.reject(new Error('no model')) } },
    env: { STAGE: 'test', EMPTY: '' },
    secrets: {
      API_KEY: 'k-1234567890',
      TOKEN: 't-1234567890',
      HOOK_SECRET: 'whsec_aC0xMjM0NTY3ODkw',
      LOGIN: 'user:password',
    },
  };
}

interface HostNeeds {
  readonly agents?: readonly AgentDefinition[];
  /** Operations that are added with any config when the library does not have them. */
  readonly operations?: readonly string[];
}

/** The host that a definition is compiled for. */
export function hostFor({ agents = [], operations = [] }: HostNeeds = {}): CompileHost {
  const host = compileHost({ ...options(), agents });
  const missing = operations.filter((name) => !host.operations.has(name));
  const added = missing.map((name) => [name, defineOperation({ name, run: () => null })] as const);
  return { ...host, operations: new Map([...host.operations, ...added]) };
}

/** A definition that must be refused, with every issue that it must get. */
export interface BrokenVector {
  readonly why: string;
  /** Default INVALID_DEFINITION. */
  readonly code?: 'INVALID_DEFINITION' | 'NOT_CONFIGURED';
  readonly agents?: readonly AgentDefinition[];
  readonly source: string;
  readonly issues: readonly BrokenIssue[];
  /** All issues in their printed form. */
  readonly printed?: string;
}

export interface BrokenIssue {
  /** `line:column` */
  readonly at: string;
  readonly path: string;
  readonly message: string;
  readonly suggestion?: string;
}

/** A definition that must be accepted. */
export interface ValidVector extends HostNeeds {
  readonly why: string;
  readonly source: string;
  /** Other sources of the same definition. */
  readonly same?: readonly string[];
  /** The parsed definition, in the current form. */
  readonly definition?: object;
  /** Its warnings, except the warnings about parts that this version does not serve. */
  readonly warnings?: readonly BrokenIssue[];
  /** Whether this version refuses to run it. */
  readonly parseOnly?: boolean;
}

/** The vectors of one folder, each with the name of its file. */
export function readVectors<V>(folder: 'broken' | 'valid'): (V & { readonly file: string })[] {
  const directory = fileURLToPath(new URL(`../vectors/definitions/${folder}/`, import.meta.url));
  return readdirSync(directory)
    .sort()
    .flatMap((file) =>
      (parse(readFileSync(directory + file, 'utf8')) as V[]).map((vector) => ({
        ...vector,
        file: file.replace('.yaml', ''),
      })),
    );
}
