/** Random flows of agents of known types. More and others with SOUND_RUNS and SOUND_SEED: 2,000 after a change of the walk. */

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileEnsemble } from '../../src/engine/definition/compile/compile-ensemble.ts';
import { parseDefinition } from '../../src/engine/definition/read/parse-ensemble.ts';
import { SchemaTypes } from '../../src/engine/definition/types/from-json-schema.ts';
import { membersOf, nameOfType, type Type } from '../../src/engine/definition/types/type.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { toDefinition } from '../engine/flow-definition.ts';
import type { Step } from '../engine/flow-model.ts';
import { concurrentFlow, sequentialFlow, unrulyFlow } from '../engine/random-flow.ts';
import { runChecked } from '../engine/run-checked.ts';
import { fits } from './fits.ts';

const RUNS = Number(process.env.SOUND_RUNS ?? 300);
const SEED = Number(process.env.SOUND_SEED ?? 20260101);

const scripts = { ok: () => '', boom: () => '', flaky: () => '', echo: () => '' };
const plain = compileHost({ ensembles: [], scripts } as never);
const code = plain.operations.get('code');
const operations = new Map(plain.operations).set('code', {
  ...code,
  // `ok` and `flaky` give the name of the agent.
  output: ({ script, give }: { script: string; give?: unknown }) =>
    (script === 'ok' || script === 'flaky') && give === undefined ? { type: 'string' } : undefined,
} as never);

function typesOf(definition: object) {
  const parsed = parseDefinition({ name: 'e', ...definition } as never);
  const result = compileEnsemble(parsed, { ...plain, operations } as never);
  if (!result.types) throw new Error(JSON.stringify(result.problems[0]));
  return result.types(() => undefined, new SchemaTypes());
}

let [completed, values, precise] = [0, 0, 0];

function isPrecise(type: Type): boolean {
  return membersOf(type).every(({ kind }) => kind !== 'any');
}

async function check(flow: readonly Step[]): Promise<void> {
  const definition = toDefinition(flow);
  const { outputs } = typesOf(definition).types;
  const { result } = await runChecked(flow);
  if (result.status !== 'completed') return;
  completed += 1;
  // Each output is the result of a step: `output`, `failed`, `success` and so on.
  for (const [name, value] of Object.entries(result.output as Record<string, Record<string, unknown>>)) {
    const type = outputs.kind === 'record' ? outputs.fields.get(name)?.type : undefined;
    if (type?.kind !== 'record') continue;
    for (const [member, { type: inferred }] of type.fields) {
      values += 1;
      if (isPrecise(inferred)) precise += 1;
      if (!fits(value[member], inferred)) {
        const found = JSON.stringify(value[member]);
        throw new Error(`${name}.${member} is ${found}, not ${nameOfType(inferred)}, in ${JSON.stringify(definition)}`);
      }
    }
  }
}

describe('the values of a completed execution have the types that are inferred for them', () => {
  const kinds = { sequential: sequentialFlow, concurrent: concurrentFlow, unruly: unrulyFlow };
  it.each(Object.entries(kinds))(
    '%s flows',
    async (_kind, flows) => {
      [completed, values, precise] = [0, 0, 0];
      await fc.assert(fc.asyncProperty(flows, check), { numRuns: RUNS, seed: SEED });
      expect(completed).toBeGreaterThan(RUNS / 10);
      // A test in which everything is `any` would find nothing.
      expect(precise / values).toBeGreaterThan(0.5);
    },
    240_000,
  );
});
