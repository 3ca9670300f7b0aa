/** The error of an optional package that can't be loaded. It says what to install. */

import { messageOf, OrchestratorError } from './errors.ts';

export interface WantedPackage {
  /** The function of the app that needs it, for the message. */
  readonly who: string;
  readonly name: string;
  /** What `npm install` takes. Default: the name. */
  readonly install?: string;
  /** The versions that work, such as `version 2.4 or later`. */
  readonly version?: string;
  /** What follows in the message. */
  readonly more?: string;
}

/** NOT_CONFIGURED. The error of a missing package has paths of the host: its text is left out. */
export function packageFailure(
  cause: unknown,
  { who, name, install = name, version = 'it', more = '' }: WantedPackage,
): OrchestratorError {
  const said = messageOf(cause).split('\n', 1)[0] as string;
  const isMissing = /Cannot find (?:package|module)|No such module|not found/i.test(said);
  const problem = isMissing
    ? `is not installed; \`npm install ${install}\``
    : `is there but can't be loaded (${said}); install ${version} again: \`npm install ${install}\``;
  const message = `${who}: the package ${name} ${problem}${more}`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: name } });
}
