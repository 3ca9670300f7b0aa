/** Attacks by large answers: records and listings of hundreds of megabytes, and idle streams of events. */

import { setTimeout as sleep } from 'node:timers/promises';
import { ask, askSilently, countStatuses, inParallel, openStream } from './requests.mjs';
import { processorMs } from './served.mjs';

const MB = { 'scripts/text.mjs': "export default ({ config }) => 'x'.repeat(config.bytes);\n" };
const foreachTexts = (bytes) => `
  - foreach: \${input.items}
    concurrency: 2
    collect: false
    steps: [{ agent: text, operation: code, config: { script: text, bytes: ${bytes} } }]
`;

const BIG = {
  ...MB,
  'ensembles/big.yaml': `name: big\nflow:${foreachTexts(1_000_000)}`,
  'ensembles/echo.yaml': 'name: echo\nflow: []\noutputs: { a: "${input.a}" }\n',
};
const numbers = (count) => Array.from({ length: count }, (_, i) => i);

/** One execution with 300 results of 1 MB, which has ended. */
const record = {
  name: 'record',
  async fill(server) {
    const answer = await ask(server, '/execute/ensemble/big', { body: { input: { items: numbers(300) } } });
    return { id: await ended(server, idOf(answer)) };
  },
};
/** 150 executions with 0.9 MB of input, which is also their output. */
const listing = {
  name: 'listing',
  async fill(server) {
    const body = { input: { a: 'x'.repeat(900_000) } };
    await inParallel(150, 4, () => ask(server, '/execute/ensemble/echo', { body }));
    return {};
  },
};
const stored = { files: BIG, storage: 'sqlite', peakMb: 500, blockMs: 2_000, seconds: 60 };

export const ANSWERS = [
  {
    ...stored,
    name: 'record',
    about: 'GET of a record with 300 results of 1 MB',
    filled: record,
    attack: ({ server, facts, signal }) => summarize(ask(server, `/executions/${facts.id}`, { signal })),
  },
  {
    ...stored,
    name: 'record-five',
    about: '5 concurrent GETs of a record with 300 results of 1 MB',
    filled: record,
    attack: async ({ server, facts, signal }) =>
      countStatuses(await inParallel(5, 5, () => ask(server, `/executions/${facts.id}`, { signal }))),
  },
  {
    ...stored,
    name: 'record-head',
    about: 'HEAD of a record with 300 results of 1 MB',
    filled: record,
    attack: ({ server, facts, signal }) =>
      summarize(ask(server, `/executions/${facts.id}`, { method: 'HEAD', signal })),
  },
  {
    ...stored,
    name: 'cancel-ended',
    about: 'POST .../cancel of an ended execution with 300 results of 1 MB',
    filled: record,
    blockMs: 1_000,
    attack: ({ server, facts, signal }) =>
      summarize(ask(server, `/executions/${facts.id}/cancel`, { method: 'POST', signal })),
  },
  {
    ...stored,
    name: 'listing',
    about: 'GET /executions?limit=250 over 150 executions with 0.9 MB of input and output',
    filled: listing,
    attack: ({ server, signal }) => summarize(ask(server, '/executions?limit=250', { signal })),
  },
  {
    ...stored,
    name: 'silent-readers',
    about: '120 connections that ask for pages of 8 MB and read nothing',
    filled: record,
    seconds: 90,
    async attack({ server, facts }) {
      const sockets = numbers(120).map(() => askSilently(server, `/executions/${facts.id}/agents?limit=250`));
      let closed = 0;
      for (const socket of sockets) socket.once('close', () => (closed += 1));
      // Node.js notices after 30 to 60 seconds that a connection makes no progress.
      await sleep(65_000);
      // A connection that reads nothing learns of its end when it writes: the first write is answered with a reset.
      for (let times = 0; times < 3; times++) {
        for (const socket of sockets) socket.write('x');
        await sleep(500);
      }
      const answer = `${closed} of 120 were disconnected after 65 s`;
      for (const socket of sockets) socket.destroy();
      return closed > 0 ? answer : { answer, problem: 'a connection without progress stays open' };
    },
  },
  {
    ...stored,
    name: 'ended-streams',
    about: '10 streams of all events of an ended execution with 30,000 steps',
    files: {
      'scripts/tiny.mjs': 'export default () => 1;\n',
      'ensembles/big.yaml':
        'name: big\nflow:\n  - foreach: ${input.items}\n    collect: false\n    steps: [{ agent: tiny, operation: code, config: { script: tiny } }]\n',
    },
    blockMs: 500,
    seconds: 90,
    async attack({ server, signal }) {
      const body = { input: { items: numbers(30_000) }, async: true };
      const id = await ended(server, idOf(await ask(server, '/execute/ensemble/big', { body, signal })));
      return countStatuses(await inParallel(10, 10, () => ask(server, `/executions/${id}/events`, { signal })));
    },
  },
  {
    ...stored,
    name: 'ended-streams-large',
    about: '5 streams of all events of an ended execution with 300 results of 1 MB',
    filled: record,
    blockMs: 500,
    attack: async ({ server, facts, signal }) =>
      countStatuses(await inParallel(5, 5, () => ask(server, `/executions/${facts.id}/events`, { signal }))),
  },
  {
    name: 'idle-streams-input',
    about: '20 streams of events of a waiting execution with an input of 80,000 objects',
    files: { 'ensembles/waits.yaml': 'name: waits\nflow:\n  - wait: go\n' },
    storage: 'sqlite',
    peakMb: 500,
    blockMs: 2_000,
    seconds: 40,
    async attack({ server, signal }) {
      const body = { input: { a: Array(80_000).fill({}) }, async: true };
      return streams(server, idOf(await ask(server, '/execute/ensemble/waits', { body, signal })), 20);
    },
  },
  {
    name: 'idle-streams-results',
    about: '10 streams of an execution that waits after 1,000 results of 20 KB',
    files: { ...MB, 'ensembles/waits.yaml': `name: waits\nflow:${foreachTexts(20_000)}  - wait: go\n` },
    storage: 'sqlite',
    peakMb: 500,
    blockMs: 2_000,
    seconds: 60,
    async attack({ server, signal }) {
      const body = { input: { items: numbers(1_000) }, async: true };
      const id = idOf(await ask(server, '/execute/ensemble/waits', { body, signal }));
      await waits(server, id);
      return streams(server, id, 10);
    },
  },
  {
    name: 'late-stream',
    about: '5 streams that resume after event 10,000 of a waiting execution',
    files: {
      'scripts/tiny.mjs': 'export default () => 1;\n',
      'ensembles/waits.yaml':
        'name: waits\nflow:\n  - foreach: ${input.items}\n    collect: false\n    steps: [{ agent: tiny, operation: code, config: { script: tiny } }]\n  - wait: go\n',
    },
    storage: 'sqlite',
    peakMb: 500,
    blockMs: 2_000,
    seconds: 90,
    async attack({ server, signal }) {
      const body = { input: { items: numbers(10_000) }, async: true };
      const id = idOf(await ask(server, '/execute/ensemble/waits', { body, signal }));
      await waits(server, id);
      return streams(server, id, 5, '10000');
    },
  },
];

const idOf = ({ first }) => /exec_\w+/.exec(first)?.[0];
const statusOf = async (server, id) => {
  // The record may be large; its status is near the start.
  const { first } = await ask(server, `/executions/${id}`);
  return /"status":"(\w+)"/.exec(first)?.[1];
};

async function ended(server, id) {
  for (let i = 0; i < 300; i++) {
    if (['completed', 'failed'].includes(await statusOf(server, id))) return id;
    await sleep(1_000);
  }
  throw new Error(`execution ${id} did not end`);
}

async function waits(server, id) {
  for (let i = 0; i < 100; i++) {
    if ((await statusOf(server, id)) === 'waiting') return;
    await sleep(500);
  }
}

const summarize = async (asked) => {
  const { status, bytes, ms } = await asked;
  return `${status}, ${(bytes / 1e6).toFixed(1)} MB in ${ms} ms`;
};

/** Streams without new events must not cost processor time. */
async function streams(server, id, count, after) {
  const open = Array.from({ length: count }, () => openStream(server, id, after));
  await sleep(4_000);
  const before = processorMs(server.pid);
  await sleep(5_000);
  const used = (processorMs(server.pid) - before) / 5;
  for (const one of open) one.destroy();
  const answer = `${Math.round(used)} ms of processor time per second`;
  // The bystanders need some of this time, too.
  return used > 250 ? { answer, problem: 'idle streams take more than 250 ms of processor time per second' } : answer;
}
