/** An engine that is not done closing before something else is, which still reads what is stored. */

import type { ExecutionEngine } from './start.ts';

/** @param last - awaited behind the last run; the storage is closed behind it */
export function closeBehind(engine: ExecutionEngine, last: () => Promise<void>): ExecutionEngine {
  return {
    attach(host) {
      const running = engine.attach(host);
      return {
        storage: running.storage,
        get active() {
          return running.active;
        },
        begin: (...given) => running.begin(...given),
        open: () => running.open(),
        whenEnded: (...given) => running.whenEnded(...given),
        cancel: (...given) => running.cancel(...given),
        signal: (...given) => running.signal(...given),
        runDue: (...given) => running.runDue(...given),
        async close(graceMs) {
          try {
            await running.close(graceMs);
          } finally {
            await last();
          }
        },
      };
    },
  };
}
