/** Loads QuickJS: the package `quickjs-wasi`, and its WebAssembly module from the file of the package or from the host. */

import type * as QuickJs from 'quickjs-wasi';
import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { packageFailure } from '../../engine/base/package-failure.ts';

/** QuickJS, ready to make machines. */
export interface LoadedQuickJs {
  readonly quickjs: typeof QuickJs;
  readonly wasm: WebAssembly.Module;
}

const PACKAGE = 'quickjs-wasi';
const FILE = 'quickjs-wasi/quickjs.wasm';

// The names of Node's modules are variables, so that a bundle for Workers does not contain them.
const importModule = (name: string) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

/**
 * @param given - the compiled module; read from the package otherwise, which needs `node:fs`
 * @throws NOT_CONFIGURED with what to install or to pass
 */
export async function loadQuickJs(
  given: WebAssembly.Module | undefined,
  load: () => Promise<typeof QuickJs> = () => import('quickjs-wasi'),
): Promise<LoadedQuickJs> {
  const quickjs = await load().catch((cause: unknown) => {
    throw packageFailure(cause, { who: 'sandbox', name: PACKAGE });
  });
  return { quickjs, wasm: given ?? (await compileFile()) };
}

async function compileFile(): Promise<WebAssembly.Module> {
  try {
    const { readFile } = await importModule('node:fs/promises');
    const { createRequire } = await importModule('node:module');
    return await WebAssembly.compile(await readFile(createRequire(import.meta.url).resolve(FILE)));
  } catch (cause) {
    const message = `sandbox: ${FILE} can't be read here (${messageOf(cause)}); import the module and pass it: \`import wasm from '${FILE}'\` and \`sandbox({ wasm, threads: 0 })\``;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: PACKAGE } });
  }
}
