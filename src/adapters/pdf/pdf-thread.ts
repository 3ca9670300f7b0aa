/** The program of a thread of the embedded renderer: it makes one PDF after the other. */

import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../engine/base/errors.ts';
import { loadPdfPackages, MissingPackage } from './load-pdf-packages.ts';
import { createRender } from './render-pages.ts';
import { RefusedHtml, type ThreadData, type ThreadJob, type ThreadMessage } from './thread-messages.ts';

const post = (message: ThreadMessage, transfer: ArrayBuffer[] = []) => parentPort?.postMessage(message, transfer);

// The packages write warnings that nobody reads, and that contain parts of the document.
for (const level of ['debug', 'log', 'info', 'warn', 'error'] as const) console[level] = () => {};

const data = workerData as ThreadData;
loadPdfPackages().then(
  (packages) => {
    const render = createRender(packages, data);
    parentPort?.on('message', async (job: ThreadJob) => {
      try {
        const { content, pages } = await render(job);
        // A copy: the buffer of a part can't move to the host.
        const bytes = new Uint8Array(content);
        post({ content: bytes, pages }, [bytes.buffer]);
      } catch (thrown) {
        if (thrown instanceof RefusedHtml) post({ refused: thrown.message });
        else post({ failed: messageOf(thrown) });
      }
    });
    post({ ready: true });
  },
  (thrown: unknown) => post({ missing: thrown instanceof MissingPackage ? thrown.message : messageOf(thrown) }),
);
