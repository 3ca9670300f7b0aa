/** What the ports have in common that need something which may not be installed. */

import type { MaybePromise } from '../base/maybe-promise.ts';

/** A port that can say before its first call what it lacks. */
export interface WithReady {
  /**
   * Loads what a later call needs, such as an optional package. It reaches no server. Called by `orchestrator.ready()`.
   * @throws NOT_CONFIGURED with what to install
   */
  ready?(): MaybePromise<void>;
}
