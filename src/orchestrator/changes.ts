/** Changes of what several processes change: the expected version, and the error when other changes always come first. */

import { OrchestratorError } from '../engine/base/errors.ts';

export interface ChangeOptions {
  /** The version from which the change was made. If another change came first, nothing is stored. Default: any version. */
  readonly ifMatch?: string | undefined;
}

/** @param what - such as `ensemble \`order\`` @throws CONFLICT for another version than the expected one */
export function refuseOtherVersion(what: string, { ifMatch }: ChangeOptions, version: string): void {
  if (ifMatch === undefined || ifMatch === version) return;
  const message = `${what} has version ${version}, not ${ifMatch}: it was changed; read it again`;
  throw new OrchestratorError('CONFLICT', message, { details: { version } });
}

/** For a change that was made again and again. */
export function alwaysChanged(what: string): OrchestratorError {
  return new OrchestratorError('CONFLICT', `${what} is changed all the time; try again`, { retryable: true });
}
