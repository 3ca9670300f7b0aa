/** Attacks by the content of requests: bodies that cost many times their size, and keys that are reported one by one. */

import { createServer } from 'node:net';
import { ask, askInChunks, countStatuses, inParallel } from './requests.mjs';
import { processorMs } from './served.mjs';

const TAKE = { 'ensembles/take.yaml': 'name: take\nflow: []\n' };
const run = (name) => `/execute/ensemble/${name}`;
const objects = (count) => `{"input":{"a":[${Array(count).fill('{}').join(',')}]}}`;
const text = (bytes) => JSON.stringify({ input: { a: 'x'.repeat(bytes) } });
const keys = (count, width) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}`.padStart(width, 'k'), 1]));

const eightTimes =
  (name, make) =>
  async ({ server, signal }) => {
    const body = JSON.stringify(make());
    return countStatuses(await inParallel(8, 8, () => ask(server, run(name), { body, signal })));
  };

export const BODIES = [
  {
    name: 'one-byte-chunks',
    about: '4 bodies of 1 MiB in chunks of one byte',
    files: TAKE,
    peakMb: 300,
    blockMs: 2_000,
    seconds: 60,
    attack: async ({ server, signal }) =>
      countStatuses(await inParallel(4, 4, () => askInChunks(server, run('take'), text(1_000_000), { signal }))),
  },
  {
    name: 'one-byte-answers',
    about: '4 answers of 4 MiB in chunks of one byte to an agent',
    files: {
      'ensembles/fetch.yaml':
        'name: fetch\nflow:\n  - { agent: a, operation: api, config: { url: "${input.url}" } }\noutputs: { size: "${length(a.output.body)}" }\n',
      'ensemble.config.mjs':
        "import { nodeHttp } from 'ensemble-orchestrator/node';\nexport default { http: nodeHttp({ allow: ['127.0.0.1'] }) };\n",
    },
    peakMb: 400,
    blockMs: 2_000,
    seconds: 60,
    async attack({ server, signal }) {
      const peer = await startChunkPeer(4 * 1024 * 1024);
      const body = { input: { url: peer.url } };
      const before = processorMs(server.pid);
      const answers = await inParallel(4, 4, () => ask(server, run('fetch'), { body, signal }));
      const used = Math.round(processorMs(server.pid) - before);
      peer.close();
      const answer = `${countStatuses(answers)}, ${used} ms of processor time`;
      return used > 5_000
        ? { answer, problem: 'chunks of one byte take more than 5,000 ms of processor time' }
        : answer;
    },
  },
  {
    name: 'many-bodies',
    about: '200 bodies of 333,000 empty objects at once',
    files: TAKE,
    peakMb: 750,
    blockMs: 3_000,
    seconds: 90,
    async attack({ server, signal }) {
      const body = objects(333_000);
      return countStatuses(await inParallel(200, 200, () => ask(server, run('take'), { body, signal })));
    },
  },
  {
    name: 'memory-objects',
    about: '150 executions with 80,000 empty objects each are kept in memory',
    files: TAKE,
    peakMb: 750,
    blockMs: 3_000,
    seconds: 90,
    async attack({ server, signal }) {
      const body = objects(80_000);
      return countStatuses(await inParallel(150, 4, () => ask(server, run('take'), { body, signal })));
    },
  },
  {
    name: 'memory-texts',
    about: '600 executions with a text of 1 MB each are kept in memory',
    files: TAKE,
    peakMb: 750,
    blockMs: 3_000,
    seconds: 60,
    async attack({ server, signal }) {
      const body = text(1_000_000);
      return countStatuses(await inParallel(600, 4, () => ask(server, run('take'), { body, signal })));
    },
  },
  {
    name: 'unknown-inputs',
    about: '8 times 45,000 unknown inputs, with 10 missing ones',
    files: {
      'ensembles/ten.yaml': `name: ten\ninputs:\n${Array.from({ length: 10 }, (_, i) => `  field-name-${i}: { type: string, required: true }\n`).join('')}flow: []\n`,
    },
    peakMb: 400,
    blockMs: 1_500,
    seconds: 30,
    attack: eightTimes('ten', () => ({ input: keys(45_000, 12) })),
  },
  {
    name: 'unknown-body-keys',
    about: '8 times 90,000 unknown keys at the top level of a body',
    files: TAKE,
    peakMb: 400,
    blockMs: 1_200,
    seconds: 30,
    attack: eightTimes('take', () => keys(90_000, 5)),
  },
  {
    name: 'unknown-schema-keys',
    about: '8 times 75,000 unknown keys against a JSON Schema without further properties',
    files: {
      'ensembles/closed.yaml':
        'name: closed\ninputs:\n  type: object\n  properties: { amount: { type: number } }\n  additionalProperties: false\nflow: []\n',
    },
    peakMb: 400,
    blockMs: 1_500,
    seconds: 30,
    attack: eightTimes('closed', () => ({ input: keys(75_000, 6) })),
  },
];

/** Starts a peer that answers every connection with `bytes` bytes, in chunks of one byte. */
function startChunkPeer(bytes) {
  const piece = '1\r\nx\r\n'.repeat(10_000);
  const server = createServer((socket) => {
    let left = bytes;
    socket.on('error', () => {});
    const pour = () => {
      while (left > 0 && !socket.destroyed) {
        const count = Math.min(left, 10_000);
        left -= count;
        if (!socket.write(piece.slice(0, count * 6))) return void socket.once('drain', pour);
      }
      socket.end('0\r\n\r\n');
    };
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n');
      pour();
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const url = `http://127.0.0.1:${server.address().port}/`;
      resolve({ url, close: () => server.close() });
    });
  });
}
