/** The program of a thread that runs sandboxed scripts, one after the other. */

import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../engine/base/errors.ts';
import { loadQuickJs } from './load-quickjs.ts';
import { type Job, runSource } from './run-source.ts';
import type { ThreadMessage } from './threads.ts';

const post = (message: ThreadMessage) => parentPort?.postMessage(message);

loadQuickJs(undefined).then(
  (loaded) => {
    parentPort?.on('message', async (job: Job) => {
      post({ answer: await runSource(loaded, job, (line) => post({ line })) });
    });
    post({ ready: true });
  },
  (thrown: unknown) => post({ failed: messageOf(thrown) }),
);
