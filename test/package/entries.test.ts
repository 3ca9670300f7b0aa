/** The content of the package: its entries, their names and their types, and nothing else. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { builtFiles, manifest, ROOT, runNode } from './built-package.ts';

/** Everything that a program can import. A removed name breaks programs, and a new name must be kept. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  '.': [
    'OrchestratorError',
    'agent',
    'createApiHandler',
    'createHandler',
    'createOrchestrator',
    'createWebhookHandler',
    'defineAgent',
    'defineConfig',
    'defineEnsemble',
    'defineOperation',
    'defineScript',
    'embeddedEngine',
    'ensemble',
    'fetchHttp',
    'foreach',
    'isOrchestratorError',
    'memoryMail',
    'memoryStorage',
    'parallel',
    'parseEnsemble',
    'signPayload',
    'sleep',
    'switchOn',
    'systemClock',
    'thirdpartyMail',
    'tryCatch',
    'verifySignature',
    'wait',
    'when',
    'whileLoop',
  ],
  './node': ['defineTests', 'folderObjects', 'loadProject', 'nodeHttp', 'toNodeListener'],
  './deno': ['toDenoHandler'],
  './bun': ['toBunHandler'],
  './workers': [
    ...['api', 'code', 'createOrchestrator', 'durableObjectStorage', 'email', 'pdf', 'platformMail', 'sms', 'storage'],
    ...['think', 'toDurableObject', 'toWorker', 'tools'],
  ],
  './sqlite': ['sqliteDatabase', 'sqliteStorage'],
  './postgres': ['postgresDatabase', 'postgresStorage'],
  './redis': ['redisKv', 'redisLimits'],
  './s3': ['s3Objects'],
  './cloudflare': ['d1Database', 'kvNamespace', 'r2Bucket'],
  './git': ['gitComponents'],
  './liquid': ['liquidTemplates'],
  './mcp': ['mcpClient'],
  './ai': ['aiModels', 'toFetch'],
  './twilio': ['twilioSms'],
  './sandbox': ['sandbox'],
  './smtp': ['smtpMail'],
  './dashboard': ['createDashboard'],
  './otel': ['openTelemetry'],
  './pdf': ['chromiumPdf', 'cloudflarePdf', 'embeddedPdf'],
  './adapter': [
    'AGENTS_IN_RECORD',
    'ActiveRun',
    'JournalLostError',
    'LISTED_VALUE_BYTES',
    'MAX_KEY_BYTES',
    'MAX_MATCHES',
    'NEVER',
    'OUTPUTS_IN_RECORD_BYTES',
    'OrchestratorError',
    'PAGE_BYTES',
    'RefusedTransactionError',
    'SHORT_OUTPUT_BYTES',
    'callPart',
    'checkKey',
    'createParts',
    'equalJson',
    'firstDeliveryId',
    'groupEnds',
    'isFinal',
    'isOrchestratorError',
    'isPlainText',
    'jsonTextBytes',
    'lineOfEnd',
    'memoryKv',
    'memoryObjects',
    'memoryTallies',
    'memoryTokens',
    'toAgentResults',
    'toExecution',
    'toListed',
    'toSummary',
    'tooManyMatches',
    'withoutValues',
  ],
  './testing': [
    'createTestOrchestrator',
    'fakeModel',
    'manualClock',
    'memoryKv',
    'memoryMail',
    'memoryObjects',
    'memorySms',
    'replay',
    'stubHttp',
    'stubPdf',
  ],
  './conformance': [
    'componentSuite',
    'dataSuite',
    'engineSuite',
    'httpSuite',
    'limitStoreSuite',
    'mailSuite',
    'storageSuite',
    'tokenSuite',
  ],
};

const codeEntries = Object.entries(manifest.exports).filter(([, target]) => typeof target !== 'string');
const specifier = (entry: string) => `ensemble-orchestrator${entry.slice(1)}`;

describe('the entries of the package', () => {
  it('are src/index.ts and the files of src/entries/', () => {
    const files = readdirSync(join(ROOT, 'src/entries')).map((file) => `./${file.replace(/\.ts$/, '')}`);
    expect(codeEntries.map(([entry]) => entry).sort()).toEqual(['.', ...files].sort());
  });

  it.each(codeEntries)('%s has its code and its types, the types first', (_entry, target) => {
    expect(Object.keys(target)).toEqual(['types', 'default']);
    for (const path of Object.values(target)) expect(existsSync(join(ROOT, path)), path).toBe(true);
  });

  it.each(codeEntries)('%s exports exactly the documented names', async (entry) => {
    const names = await runNode(`console.log(JSON.stringify(Object.keys(await import('${specifier(entry)}')).sort()))`);
    expect(names).toEqual([...(NAMES[entry] ?? ['(an entry without a list)'])].sort());
  });

  it('`require()` loads the main entry', async () => {
    const program =
      "const p = require('ensemble-orchestrator'); console.log(JSON.stringify(typeof p.createOrchestrator))";
    expect(await runNode(program, ['--input-type=commonjs'])).toBe('function');
  });

  it('the command names its interpreter in its first line', () => {
    expect(readFileSync(join(ROOT, 'dist/cli.js'), 'utf8').split('\n', 1)).toEqual(['#!/usr/bin/env node']);
  });

  it('the entries share one copy of each module, so that each recognizes errors of the others', async () => {
    const program = `
      import { isOrchestratorError } from 'ensemble-orchestrator';
      import { createTestOrchestrator } from 'ensemble-orchestrator/testing';
      const error = await createTestOrchestrator().execute('nobody').catch((thrown) => thrown);
      console.log(JSON.stringify(isOrchestratorError(error, 'NOT_FOUND')));`;
    expect(await runNode(program)).toBe(true);
    expect(
      builtFiles().filter(({ text }) => /OrchestratorError = class|class OrchestratorError/.test(text)).length,
    ).toBe(1);
  });

  it('no file of the build contains the folder where it was built', () => {
    expect(
      builtFiles()
        .filter(({ text }) => text.includes(ROOT))
        .map(({ name }) => name),
    ).toEqual([]);
  });
});

describe('the types of the package', () => {
  it('hold in a strict program without DOM, declaration files checked too', () => {
    const program = `
      import { createOrchestrator, defineEnsemble, type Execution, type HttpClient, type Storage } from 'ensemble-orchestrator';
      import { createTestOrchestrator, type ManualClock } from 'ensemble-orchestrator/testing';
      import * as node from 'ensemble-orchestrator/node';
      export const e = defineEnsemble({ name: 'e', inputs: { n: { type: 'number', required: true } }, flow: [] });
      export const o = createOrchestrator({ ensembles: [e] });
      export const run: Promise<Execution<unknown>> = o.execute('e', { n: 1 });
      // @ts-expect-error: n is a number
      export const wrong = o.execute('e', { n: 'one' });
      export type Used = [HttpClient, Storage, ManualClock, typeof node, typeof createTestOrchestrator];`;
    const name = join(ROOT, 'test/package/consumer.mts');
    const options: ts.CompilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2022.d.ts'],
      types: ['node'],
      skipLibCheck: false,
      noEmit: true,
    };
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile } = host;
    host.fileExists = (path) => path === name || fileExists(path);
    host.readFile = (path) => (path === name ? program : readFile(path));
    const problems = ts.getPreEmitDiagnostics(ts.createProgram({ rootNames: [name], options, host }));
    const ours = problems.filter(({ file }) => file === undefined || !file.fileName.includes('node_modules/'));
    expect(
      ours.map(
        ({ file, messageText }) => `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
      ),
    ).toEqual([]);
  }, 60_000);
});
