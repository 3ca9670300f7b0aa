/**
 * The example `examples/durable-object` on workerd with a disk. workerd is killed with SIGKILL while an execution sleeps, and while a
 * step runs. After workerd has started again, no request is made: the alarm of the object alone resumes the execution.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delayMs } from 'node:timers/promises';
import { bundleWorker, workerd } from './programs.mjs';

const START_MS = 30_000;
/** How long the result of the first step may take to be stored. */
const STORE_MS = 3_000;
/** An alarm for an active run is due at most 30 s after the run began. */
const RESUME_MS = 60_000;
const CASES = {
  'a kill during a sleep': { delay: '6s', killAfter: 1 },
  'a kill during the step after the sleep': { delay: '1s', killAfter: 2 },
};

/** @param work - a folder with `examples/` and the installed package @returns the check, whose `check()` returns the differences */
export function durableObjectsKill(work) {
  return {
    name: 'kill',
    version: workerd().version,
    async check() {
      const bundle = join(work, 'durable-object.bundle.mjs');
      await bundleWorker(join(work, 'examples/durable-object/worker.mjs'), bundle);
      const failures = [];
      for (const [title, about] of Object.entries(CASES)) {
        const failure = await runCase(join(work, title.replaceAll(' ', '-')), bundle, about).catch((error) => error);
        if (failure) failures.push(`${title}: ${failure}`);
      }
      return failures;
    },
  };
}

/** @param killAfter - the number of the message at which workerd is killed; a message of a step that runs is not answered */
async function runCase(folder, bundle, { delay, killAfter }) {
  mkdirSync(join(folder, 'data'), { recursive: true });
  const receiver = await openReceiver();
  writeFileSync(join(folder, 'worker.mjs'), readFileSync(bundle));
  writeFileSync(join(folder, 'config.capnp'), configuration(receiver.url));
  const first = await startWorkerd(folder);
  let second;
  try {
    if (killAfter === 2) receiver.holdFrom(2);
    const response = await fetch(`${first.url}/reminders`, {
      method: 'POST',
      body: JSON.stringify({ to: 'Ada', delay }),
      signal: AbortSignal.timeout(START_MS),
    });
    if (response.status !== 202) return `POST /reminders answered ${response.status}: ${await response.text()}`;
    await receiver.received(killAfter);
    if (killAfter === 1) await delayMs(STORE_MS);
    await first.kill();
    receiver.holdFrom(Number.POSITIVE_INFINITY);
    second = await startWorkerd(folder);
    // The step that was killed runs again: nothing says whether it had its effect.
    await receiver.received(killAfter + 1);
    const expected = ['A reminder for Ada is set', ...Array(killAfter).fill('Here it is, Ada')];
    const found = receiver.messages();
    return JSON.stringify(found) === JSON.stringify(expected) ? undefined : `the receiver got ${JSON.stringify(found)}`;
  } finally {
    await first.kill();
    await second?.kill();
    receiver.close();
  }
}

/** A server that keeps what it receives. */
async function openReceiver() {
  const messages = [];
  const waiting = new Set();
  let holdFrom = Number.POSITIVE_INFINITY;
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    messages.push(text);
    if (messages.length < holdFrom) response.end();
    for (const look of waiting) look();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    messages: () => messages,
    /** From this message on, none is answered. */
    holdFrom(number) {
      holdFrom = number;
    },
    received(count) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`message ${count} did not arrive; received: ${messages}`)),
          RESUME_MS,
        );
        const look = () => {
          if (messages.length < count) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      });
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function configuration(notifyUrl) {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "disk", disk = (path = "data", writable = true)),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-01-01",
  durableObjectNamespaces = [(className = "Workflows", uniqueKey = "workflows", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "WORKFLOWS", durableObjectNamespace = "Workflows"),
    (name = "NOTIFY_URL", text = "${notifyUrl}"),
  ],
);
`;
}

/** Starts workerd on a free port. */
async function startWorkerd(folder) {
  const child = spawn(workerd().program(), ['serve', 'config.capnp', '--control-fd=3', '--experimental'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const ended = once(child, 'exit');
  const port = await new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`workerd did not start: ${errors}`)), START_MS);
    child.stdio[3].setEncoding('utf8').on('data', (part) => {
      text += part;
      const [, found] = /"port":(\d+)/.exec(text) ?? [];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    });
    child.once('exit', () => reject(new Error(`workerd ended: ${errors}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
