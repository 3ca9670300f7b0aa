/** The context of one attempt, for tests that call an operation without an orchestrator. */

import { copyJson } from '../../src/engine/base/json/json.ts';
import type { OperationContext } from '../../src/index.ts';

/** @param given - `config`, and what differs from an attempt that has nothing special. Its parts run at once, and none is stored */
export function operationContext<Config>(
  given: Pick<OperationContext<Config>, 'config'> & Partial<OperationContext<Config>>,
): OperationContext<Config> {
  return {
    input: null,
    env: {},
    signal: new AbortController().signal,
    idempotencyKey: 'key-1',
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    execution: { id: 'exec_1', ensemble: 'e', agent: 'a', attempt: 1, hops: 0 },
    step: async (_part, run) => copyJson(await run()),
    callAgent: async (name) => {
      throw new Error(`no agent ${name} here`);
    },
    describeAgent: () => undefined,
    render: () => undefined,
    emitText() {},
    ...given,
  };
}
