/** TypeScript modules of a project: by the runtime, or by jiti where the runtime can't read them. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { importDefault } from '../../src/project/import-default.ts';

const refused = (code: string) => () => Promise.reject(Object.assign(new Error('refused by the runtime'), { code }));
const noTypeScript = refused('ERR_UNKNOWN_FILE_EXTENSION');

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'ensemble-typescript-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
  return folder;
}

describe('a TypeScript module that the runtime can not read', () => {
  it.each(['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'])(
    'is translated after %s, with the files that it imports, enums and `await` included',
    async (code) => {
      const folder = folderWith({
        'a.ts':
          "import { double } from './b.ts';\nenum Unit { Cent = 'c' }\nexport default (n: number): string => double(n) + Unit.Cent;\n",
        'b.ts':
          'const two: number = await Promise.resolve(2);\nexport const double = (n: number): string => String(n * two);\n',
      });
      const { value } = (await importDefault(folder, 'a.ts', '', refused(code))) as { value: (n: number) => string };
      expect(value(4)).toBe('8c');
    },
  );

  it('is read again after a change', async () => {
    const folder = folderWith({ 'a.ts': 'export default 1 as number;\n' });
    expect(await importDefault(folder, 'a.ts', '', noTypeScript)).toEqual({ value: 1 });
    writeFileSync(join(folder, 'a.ts'), 'export default 2 as number;\n');
    expect(await importDefault(folder, 'a.ts', '?reload=2', noTypeScript)).toEqual({ value: 2 });
  });

  it('has no value without a default export', async () => {
    const folder = folderWith({ 'a.ts': 'export const a: number = 1;\n' });
    expect(await importDefault(folder, 'a.ts', '', noTypeScript)).toEqual({ value: undefined });
  });

  it.each([
    ['const x: number = ;\n', "can't be imported: ParseError: Unexpected token (a.ts:1)"],
    ["\nthrow new TypeError('at import');\n", "can't be imported: TypeError: at import (a.ts:2)"],
    ["import b from './b.ts';\nexport default b;\n", "can't be imported: Cannot find module './b.ts' (a.ts)"],
  ])('says why %j has no value, with the file and no path of this computer', async (text, problem) => {
    const folder = folderWith({ 'a.ts': text });
    const imported = (await importDefault(folder, 'a.ts', '', noTypeScript)) as { problem: string };
    expect(`${imported.problem} (a.ts)`).toContain(problem.replace(' (a.ts)', ''));
    expect(imported.problem).not.toContain(folder);
  });

  it('names jiti, and the ways without it, if jiti is not installed', async () => {
    const folder = folderWith({ 'a.ts': 'export default 1 as number;\n' });
    const missing = refused('ERR_MODULE_NOT_FOUND') as () => Promise<never>;
    expect(await importDefault(folder, 'a.ts', '', noTypeScript, missing)).toEqual({
      problem:
        "this runtime can't import `.ts` files: install the package jiti (`npm install jiti`), use Node 22.18 or newer, Deno or Bun, or write it as `.mjs`",
    });
    const unsupported = refused('ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX');
    expect(await importDefault(folder, 'a.ts', '', unsupported, missing)).toEqual({
      problem: "can't be imported: refused by the runtime",
    });
  });
});
