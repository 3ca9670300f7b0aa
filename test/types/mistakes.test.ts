/** Mistakes in TypeScript are found by the compiler, with the name of what is wrong. Seen on the built package, as users have it. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, ROOT } from '../cli/cli-process.ts';
import { MISTAKES, VALID } from './mistakes.ts';

// Below the package, so that its own name and zod are found.
const FOLDER = join(ROOT, 'node_modules/.cache/type-mistakes');
const COMPILERS = { '5.9': 'typescript/bin/tsc', '7': 'typescript-7/bin/tsc' };
const fileOf = (at: number) => `mistake-${String(at).padStart(2, '0')}.ts`;

beforeAll(async () => {
  await ensureBuilt();
  if (!existsSync(join(ROOT, 'dist/index.d.ts'))) throw new Error('the types are not built; run `npm run build` first');
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(FOLDER, 'valid.ts'), VALID);
  MISTAKES.forEach(({ code }, at) => {
    writeFileSync(join(FOLDER, fileOf(at)), code);
  });
}, 60_000);
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

/** The messages of each file. */
function compile(compiler: string, exactOptional: boolean): ReadonlyMap<string, string> {
  const compilerOptions = {
    ...{
      strict: true,
      noEmit: true,
      target: 'ES2022',
      module: 'NodeNext',
      allowImportingTsExtensions: true,
      types: ['node'],
    },
    ...{ exactOptionalPropertyTypes: exactOptional, skipLibCheck: false },
    paths: {
      'ensemble-orchestrator': ['../../../dist/index.d.ts'],
      'ensemble-orchestrator/*': ['../../../dist/*.d.ts'],
    },
  };
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const { stdout } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules', compiler), '-p', FOLDER, '--pretty', 'false'],
    {
      cwd: FOLDER,
      encoding: 'utf8',
    },
  );
  const found = new Map<string, string>();
  let file = '';
  for (const line of stdout.split('\n')) {
    file = /^(\S.*?)\(\d+,\d+\): error/.exec(line)?.[1] ?? file;
    found.set(file, `${found.get(file) ?? ''}${line}\n`);
  }
  return found;
}

describe.each(Object.entries(COMPILERS))('TypeScript %s', (_version, compiler) => {
  it.each([false, true])(
    'finds each mistake, and nothing else; exactOptionalPropertyTypes: %s',
    (exactOptional) => {
      const found = compile(compiler, exactOptional);
      const missed = MISTAKES.flatMap(({ title, names }, at) => {
        const message = found.get(fileOf(at)) ?? '';
        return message.includes(names) ? [] : [`${title}: ${message || 'no error'}`];
      });
      expect(missed).toEqual([]);
      const others = [...found].filter(([file, text]) => !file.startsWith('mistake-') && text.trim() !== '');
      expect(others).toEqual([]);
    },
    120_000,
  );
});
