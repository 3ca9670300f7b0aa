/** What an editor offers in a definition, by TypeScript's language service. */

import { join } from 'node:path';
import ts from 'typescript';
import { beforeAll, expect, it } from 'vitest';
import { ROOT } from '../architecture/source-graph.ts';

const FILE = join(ROOT, 'test/types/offered.ts');
/** How the language service sorts optional members; what comes after is in scope by itself. */
const MEMBERS = '12';
let text = '';
let version = 0;
let service: ts.LanguageService;

beforeAll(() => {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, ROOT);
  const host: ts.LanguageServiceHost = {
    getScriptFileNames: () => [FILE],
    getScriptVersion: (file) => (file === FILE ? String(version) : '1'),
    getScriptSnapshot: (file) => {
      const found = file === FILE ? text : ts.sys.readFile(file);
      return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found);
    },
    getCurrentDirectory: () => ROOT,
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (file) => file === FILE || ts.sys.fileExists(file),
    readFile: ts.sys.readFile,
  };
  service = ts.createLanguageService(host);
});

/** @param step - with `|` where the person types */
function offered(step: string): string[] {
  const code = `import { defineEnsemble } from 'ensemble-orchestrator';\nexport default defineEnsemble({ name: 'e', flow: [${step}] });`;
  const at = code.indexOf('|');
  text = code.replace('|', '');
  version += 1;
  const { entries = [] } = service.getCompletionsAtPosition(FILE, at, {}) ?? {};
  // The keys and values of the place come before the names of the scope.
  return entries
    .filter(({ sortText }) => sortText <= MEMBERS)
    .map(({ name }) => name)
    .sort();
}

it.each([
  [
    'the keys of a wait, and no others',
    "{ wait: 'go', | }",
    ['condition', 'fields', 'name', 'onTimeout', 'text', 'timeout', 'title'],
  ],
  [
    'the keys of the config of api',
    "{ agent: 'a', operation: 'api', config: { url: 'u', | } }",
    [
      'auth',
      'binary',
      'body',
      'expect',
      'form',
      'headers',
      'method',
      'multipart',
      'paginate',
      'params',
      'query',
      'response',
      'timeout',
    ],
  ],
  [
    'the keys of the config of sms, in a block',
    "{ if: true, then: [{ agent: 'a', operation: 'sms', config: { to: '+1', | } }] }",
    ['body', 'from', 'provider'],
  ],
  [
    'the values of a key',
    "{ agent: 'a', operation: 'tools', config: { mcp: 'm', tool: 't', transport: '|' } }",
    ['http', 'mcp'],
  ],
])('%s', (_title, step, expected) => {
  expect(offered(step).filter((name) => name !== '"<<"')).toEqual(expected);
});

it('the operations', () => {
  expect(offered("{ agent: 'a', operation: '|' }")).toEqual([
    ...['api', 'code', 'email', 'pdf', 'sms', 'storage', 'think', 'tools'],
  ]);
});

it('the keys of an agent step, and those of a wait that tell the two apart', () => {
  const keys = offered("{ agent: 'a', | }");
  expect(keys).toEqual(expect.arrayContaining(['operation', 'config', 'input', 'retry', 'timeout']));
  expect(keys).not.toEqual(expect.arrayContaining(['foreach']));
});
