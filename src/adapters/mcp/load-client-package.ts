/** Loads the optional package `@modelcontextprotocol/client` when a connection first needs it. */

import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';

export type ClientPackage = typeof import('./client-package.ts');

const NAME = '@modelcontextprotocol/client';

/** @throws NOT_CONFIGURED when the package can't be loaded */
export async function loadClientPackage(
  load: () => Promise<ClientPackage> = () => import('./client-package.ts'),
): Promise<ClientPackage> {
  try {
    return await load();
  } catch (cause) {
    const isMissing = /Cannot find (?:package|module)|No such module|not found/i.test(messageOf(cause));
    const message = isMissing
      ? `mcpClient: the package ${NAME} is not installed; \`npm install ${NAME}\``
      : `mcpClient: the package ${NAME} is there but can't be loaded (${messageOf(cause)}); install version 2.4 or later again`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: NAME } });
  }
}
