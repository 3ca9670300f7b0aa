/** The context of a sandboxed script, for tests that call it without an orchestrator. */

import type { SandboxContext } from '../../src/entries/sandbox.ts';
import { operationContext } from '../operations/operation-context.ts';

export interface LoggedLine {
  readonly level: string;
  readonly fields: object;
  readonly message: string | undefined;
}

/** @param lines - receives what the script logs */
export function sandboxContext(given: Partial<SandboxContext> = {}, lines: LoggedLine[] = []): SandboxContext {
  const log = (level: string) => (fields: object, message?: string) => void lines.push({ level, fields, message });
  const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
  return { ...operationContext({ config: {}, logger }), ...given };
}
