/** Loads the optional package `isomorphic-git` when a repository is read for the first time. */

import { packageFailure } from '../../../engine/base/package-failure.ts';

export type Git = typeof import('isomorphic-git');

/** @throws NOT_CONFIGURED when the package can't be loaded */
export async function loadGit(load: () => Promise<Git> = () => import('isomorphic-git')): Promise<Git> {
  try {
    return await load();
  } catch (cause) {
    throw packageFailure(cause, { who: 'gitComponents', name: 'isomorphic-git', version: 'version 1.44 or later' });
  }
}
