/** What the definitions of the vectors are compiled against. */

import * as z from 'zod';
import { defineOperation, type OrchestratorOptions } from '../../src/index.ts';

// A Standard Schema that no known library made.
const plainConfig = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) =>
      (value as { size?: unknown }).size === 1
        ? { value: value as { size: number } }
        : { issues: [{ message: 'expected 1', path: [{ key: 'size' }] }] },
  },
};

/** Fresh options: scripts `score` and `notify`, an operation `plain` and one `echo`, some variables and secrets. */
export function host(): OrchestratorOptions {
  return {
    scripts: { score: () => ({ value: 1 }), notify: () => null },
    operations: [
      defineOperation({ name: 'plain', config: plainConfig, run: () => null }),
      defineOperation({ name: 'echo', config: z.looseObject({}), run: ({ config }) => config }),
    ],
    env: { STAGE: 'test', EMPTY: '' },
    secrets: { API_KEY: 'k-1234567890', TOKEN: 't-1234567890', HOOK_SECRET: 'h-1234567890', LOGIN: 'user:password' },
  };
}
