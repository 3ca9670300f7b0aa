/** Loads the optional package `@modelcontextprotocol/client` when a connection first needs it. */

import { packageFailure } from '../../engine/base/package-failure.ts';

export type ClientPackage = typeof import('./client-package.ts');

/** @throws NOT_CONFIGURED when the package can't be loaded */
export async function loadClientPackage(
  load: () => Promise<ClientPackage> = () => import('./client-package.ts'),
): Promise<ClientPackage> {
  try {
    return await load();
  } catch (cause) {
    throw packageFailure(cause, {
      who: 'mcpClient',
      name: '@modelcontextprotocol/client',
      version: 'version 2.4 or later',
    });
  }
}
