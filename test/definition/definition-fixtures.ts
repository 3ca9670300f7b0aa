/** What the definitions of the vectors are compiled against, and the vectors themselves. */

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { CompileHost } from '../../src/engine/definition/compile-host.ts';
import { type AgentDefinition, defineOperation, type OrchestratorOptions } from '../../src/index.ts';
import { compileHost } from '../../src/orchestrator.ts';

// A Standard Schema that no known library made.
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

/** Fresh options: scripts `score` and `notify`, an operation `plain`, some variables and secrets. */
export function options(): OrchestratorOptions {
  return {
    scripts: { score: () => ({ value: 1 }), notify: () => null },
    operations: [defineOperation({ name: 'plain', config: plainConfig, run: () => null })],
    env: { STAGE: 'test', EMPTY: '' },
    secrets: { API_KEY: 'k-1234567890', TOKEN: 't-1234567890', HOOK_SECRET: 'h-1234567890', LOGIN: 'user:password' },
  };
}

interface HostNeeds {
  readonly agents?: readonly AgentDefinition[];
  /** Operations that the library may not have yet: then they take any config. */
  readonly operations?: readonly string[];
}

/** What to compile against. */
export function hostFor({ agents = [], operations = [] }: HostNeeds = {}): CompileHost {
  const host = compileHost({ ...options(), agents });
  const missing = operations.filter((name) => !host.operations.has(name));
  const added = missing.map((name) => [name, defineOperation({ name, run: () => null })] as const);
  return { ...host, operations: new Map([...host.operations, ...added]) };
}

/** A definition that must be refused, and every issue it must get. */
export interface BrokenVector {
  readonly why: string;
  /** Default INVALID_DEFINITION. */
  readonly code?: 'INVALID_DEFINITION' | 'NOT_CONFIGURED';
  readonly agents?: readonly AgentDefinition[];
  readonly source: string;
  readonly issues: readonly BrokenIssue[];
  /** All issues as they are printed. */
  readonly printed?: string;
}

export interface BrokenIssue {
  /** `line:column` */
  readonly at: string;
  readonly path: string;
  readonly message: string;
  readonly suggestion?: string;
}

/** A definition that must be taken. */
export interface ValidVector extends HostNeeds {
  readonly why: string;
  readonly source: string;
  /** Other sources of the same definition. */
  readonly same?: readonly string[];
  /** What it reads as, in the current form. */
  readonly definition?: object;
  /** What is told of it and refuses nothing, beside the parts that this version does not serve. */
  readonly warnings?: readonly BrokenIssue[];
  /** This version refuses to run it. */
  readonly parseOnly?: boolean;
}

/** The vectors of one folder, each with the file it stands in. */
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
