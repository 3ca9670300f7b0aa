/** Runs an agent that an operation calls: a flow of one step, over the journal of the run that calls it. */

import { NO_GUARDS } from './enter-step.ts';
import { Run, type RunCall } from './run.ts';
import { runList } from './run-list.ts';
import { RunScope } from './run-scope.ts';

export const runCall: RunCall = async ({ callee, input, keyPrefix, cancellation, caller }) => {
  const { accepted, compiled, journal, ports, worker } = caller;
  const run = new Run(compiled, { ...accepted, input }, journal, ports, cancellation, runCall, worker);
  const scope = new RunScope(run, undefined, callee.slots, cancellation, keyPrefix);
  const forgetExit = caller.exit.onStop((reason) => run.exit.stop(reason));
  // The caller is at work while the agent waits for a retry, so the run is not suspended.
  journal.branches(1);
  try {
    await runList(callee.flow, scope, NO_GUARDS);
  } finally {
    journal.branches(-1);
    forgetExit();
  }
  return scope.results[0];
};
