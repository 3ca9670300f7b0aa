/** Every access of the examples, misspelt one at a time: with declared answers, the type check refuses them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { fakeModel, memoryMail, stubPdf } from '../../src/entries/testing.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { checkEnsemble } from '../../src/orchestrator/definitions/load-definitions.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';
import { openProject } from '../../src/project/load-project.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const PROJECTS = ['quickstart', 'order-flow', 'price-watcher', 'invoice', 'newsletter', 'support-triage', 'rollouts'];
const sql = { kind: 'sql' } as never;
const DESK = {
  ...{ sql, mail: memoryMail(), pdf: stubPdf(), linkSecret: 'x'.repeat(40), publicUrl: 'https://x.example' },
  ...{ bankUrl: 'https://bank.example', secrets: { INTAKE_SECRET: 'x', PARTNER_SECRET: 'y' }, model: fakeModel([]) },
};

/** The expressions of a text, each with the offset of its first character. Texts in quotes are blanked. */
function* expressionsIn(text: string): Iterable<readonly [offset: number, code: string]> {
  for (const { index, 0: whole } of text.matchAll(/\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\{\{[^{}]*\}\}/g))
    yield [index, whole.replace(/'[^']*'/g, (quoted) => ' '.repeat(quoted.length))];
}

/** The text with each field that an expression reads misspelt, one at a time. */
function* misspelt(text: string): Iterable<readonly [access: string, text: string]> {
  for (const [offset, code] of expressionsIn(text))
    for (const { index, 0: access } of code.matchAll(/(?<=[\w\])])\.[A-Za-z_]\w*\b(?!\()/g)) {
      const end = offset + index + access.length;
      yield [`${code} ${access}`, `${text.slice(0, end)}x${text.slice(end)}`];
    }
}

async function deskOf(name: string, given: object): Promise<OrchestratorOptions> {
  return (await import(join(EXAMPLES, name, 'desk.mjs'))).deskOptions({ ...DESK, ...given });
}

async function examples(): Promise<[name: string, text: string, options: OrchestratorOptions][]> {
  const projects = await Promise.all(
    PROJECTS.map(async (name) => {
      const { project, options } = await openProject(join(EXAMPLES, name), {}, { assumeVariables: true });
      return project.ensembles.map(({ file, text }) => [`${name}/${file}`, text, options] as const);
    }),
  );
  const yaml = (path: string) => readFileSync(join(EXAMPLES, path), 'utf8');
  const desk = (name: string, options: OrchestratorOptions) =>
    readdirSync(join(EXAMPLES, name, 'ensembles'))
      .filter((file) => !file.endsWith('.test.yaml'))
      .map((file) => [`${name}/${file}`, yaml(`${name}/ensembles/${file}`), options] as const);
  return [
    ...projects.flat(),
    ...desk('claims-desk', await deskOf('claims-desk', { env: { PARTNER_URL: 'https://p.example', BANK_URL: 'b' } })),
    ...desk('refund-desk', await deskOf('refund-desk', {})),
    ['csv-export', yaml('csv-export/ensembles/export-orders.yaml'), { bindings: { sql } }],
  ].map(([name, text, options]) => [name, text, options] as [string, string, OrchestratorOptions]);
}

it('at least 95 of 100 misspelt accesses of the examples are refused, and no example is', async () => {
  let all = 0;
  const silent: string[] = [];
  for (const [name, text, options] of await examples()) {
    const host = compileHost(options);
    expect(checkEnsemble(text, host).issues, name).toEqual([]);
    for (const [access, wrong] of misspelt(text)) {
      all += 1;
      if (checkEnsemble(wrong, host).issues.length === 0) silent.push(`${name}: ${access}`);
    }
  }
  expect(all).toBeGreaterThan(150);
  expect(silent.length / all, silent.join('\n')).toBeLessThanOrEqual(0.05);
});
