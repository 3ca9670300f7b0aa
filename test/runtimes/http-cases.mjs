/** The HTTP suite, and peers that misbehave, with the HTTP client of a runtime. The peer is a server on loopback. */

import { isOrchestratorError } from 'ensemble-orchestrator';
import { httpSuite } from 'ensemble-orchestrator/conformance';

const TIMES = 20;
const TIMEOUT_MS = 150;
// 100 ms, on a machine four times slower.
const SLACK_MS = 400;
const CAP = 256 * 1024;

/** The end of a body that is cut short, or is not what its content coding says. */
const CUT = /^AGENT_FAILED (?:connection|malformed|encoding) true$/;

/** How a call of each route ends. Each route is asked many times at once. */
const BAD_PEERS = {
  never: /^TIMEOUT true$/,
  trickle: /^TIMEOUT true$/,
  'infinite-1xx': /^TIMEOUT true$/,
  infinite: /^AGENT_FAILED too-large false$/,
  // A client that can't tell whether a compressed body is complete refuses it.
  bomb: /^AGENT_FAILED (?:too-large false|encoding true)$/,
  'cut-gzip': CUT,
  'cut-deflate': CUT,
  'cut-br': CUT,
  'cut-chunked': CUT,
  encodings: /^AGENT_FAILED encoding true$/,
  zstd: /^AGENT_FAILED encoding true$/,
  // Some runtimes accept a header of 1 MB. Its answer has no end.
  'big-header': /^(?:AGENT_FAILED (?:connection|malformed)|TIMEOUT) true$/,
  garbage: /^AGENT_FAILED (?:connection|malformed) true$/,
  reset: /^AGENT_FAILED (?:connection|malformed) true$/,
  'reset-mid-body': /^AGENT_FAILED (?:connection|malformed) true$/,
  short: /^AGENT_FAILED (?:connection|malformed) true$/,
  // The length is too small: the rest does not belong to this answer.
  long: /^(?:200, 5 bytes|AGENT_FAILED (?:connection|malformed) true)$/,
  'broken-gzip': CUT,
};

/** Routes whose answer is complete: the client may keep the connection for the next call. */
const COMPLETE = ['encodings', 'zstd', 'broken-gzip', 'cut-gzip', 'cut-deflate', 'cut-br'];

/**
 * @param clients - by name: a function that creates a client
 * @param resent - by name: the methods that its runtime may send twice
 * @returns the cases
 */
export function httpCases(peer, clients, resent = {}) {
  const cases = [];
  for (const [name, create] of Object.entries(clients)) {
    const it = (title, body) => cases.push({ title: `${name}: ${title}`, body });
    httpSuite({
      name,
      create,
      peer: () => peer,
      resent: resent[name],
      test: { describe: (_title, body) => body(), it },
    });
    badPeerCases(peer, () => create({ allow: ['127.0.0.1'] }), it);
  }
  return cases;
}

/** @returns null for a case that passes, otherwise its error */
export async function outcomeOf({ title, body }) {
  try {
    await body();
    return null;
  } catch (error) {
    return `${title}\n${error?.stack ?? error}`;
  }
}

function badPeerCases(peer, create, it) {
  // What `/long` sends after its answer breaks the next call on the same connection.
  const ask = async (path, tries = TIMES) => {
    try {
      const { body } = await create().send({ method: 'GET', url: peer + path });
      return Number(new TextDecoder().decode(body));
    } catch (error) {
      if (tries === 0) throw error;
      return ask(path, tries - 1);
    }
  };
  for (const [route, expected] of Object.entries(BAD_PEERS)) {
    it(`${TIMES} calls of /${route} end as they must, with their sockets closed`, async () => {
      const isLate = Symbol('late');
      const waits = String(expected).includes('TIMEOUT');
      const path = COMPLETE.includes(route) ? `${route}/many` : route;
      const call = () => outcome(create(), `${peer}/${path}`, waits ? TIMEOUT_MS : 60_000);
      const calls = Promise.all(Array.from({ length: TIMES }, call));
      const late = waits && new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS + SLACK_MS, isLate));
      const ended = await (late ? Promise.race([calls, late]) : calls);
      if (ended === isLate) throw new Error(`a call took longer than its timeout and ${SLACK_MS} ms`);
      for (const one of ended) if (!expected.test(one)) throw new Error(`${one} instead of ${expected}`);
      if (path !== route) return;
      for (let tries = 0; (await ask(`/open/${route}`)) > 0; tries++)
        if (tries > 2_000) throw new Error('a socket stays open');
    });
  }
  it('a redirect loop and a redirect to the metadata address cause one request each', async () => {
    for (const [route, status] of Object.entries({ 'redirect-loop': 302, 'redirect-metadata': 307 })) {
      const before = await ask(`/count/${route}`);
      const ended = await outcome(create(), `${peer}/${route}`, 20_000);
      if (ended !== `${status}, 0 bytes`) throw new Error(`${route} ended as ${ended}`);
      if ((await ask(`/count/${route}`)) !== before + 1) throw new Error(`${route} was followed`);
    }
  });
}

async function outcome(client, url, timeoutMs) {
  try {
    const { status, body } = await client.send({ method: 'GET', url, timeoutMs, maxResponseBytes: CAP });
    return `${status}, ${body.byteLength} bytes`;
  } catch (error) {
    if (!isOrchestratorError(error)) return String(error);
    return [error.code, error.details.reason, error.retryable].filter((part) => part !== undefined).join(' ');
  }
}
