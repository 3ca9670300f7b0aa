/** Requests of an attacker. Each one ends, and answers are counted and dropped. */

import { Agent, request } from 'node:http';
import { connect } from 'node:net';

const FIRST_BYTES = 2_000;
const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

/**
 * @param options - `method`, `body` (a value for JSON, or text), `headers`
 * @returns `status` (or the code of the connection's error), `bytes`, `first` (the start of the answer as text), `ms`
 */
export function ask({ url, token }, path, { method, body, headers, signal } = {}) {
  const began = performance.now();
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve) => {
    let bytes = 0;
    let first = '';
    const end = (status) => resolve({ status, bytes, first, ms: Math.round(performance.now() - began) });
    const asked = request(
      `${url}/api/v1${path}`,
      {
        agent,
        signal,
        method: method ?? (text === undefined ? 'GET' : 'POST'),
        headers: {
          authorization: `Bearer ${token}`,
          ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
      },
      (response) => {
        response.on('data', (chunk) => {
          bytes += chunk.length;
          if (first.length < FIRST_BYTES) first += chunk.toString('utf8', 0, FIRST_BYTES);
        });
        response.on('end', () => end(response.statusCode));
        response.on('error', () => end('broken off'));
      },
    );
    asked.on('error', (error) => end(error.code ?? 'broken off'));
    asked.end(text);
  });
}

/** Sends a GET and reads nothing of the answer. @returns the connection */
export function askSilently({ url, token }, path) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  socket.pause();
  socket.write(`GET /api/v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  return socket;
}

/** Sends a POST whose body is in chunks of one byte. @returns as `ask`, without `bytes` */
export function askInChunks({ url, token }, path, body, { signal } = {}) {
  const { hostname, port } = new URL(url);
  const began = performance.now();
  const piece = 10_000;
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let first = '';
    let sent = 0;
    const end = () => {
      socket.destroy();
      const status = /^HTTP\/1\.1 (\d+)/.exec(first)?.[1];
      resolve({
        status: status === undefined ? 'broken off' : Number(status),
        first,
        ms: Math.round(performance.now() - began),
      });
    };
    signal?.addEventListener('abort', end, { once: true });
    socket.on('data', (chunk) => {
      first = (first + chunk).slice(0, FIRST_BYTES);
      if (first.includes('\r\n\r\n')) end();
    });
    socket.on('error', end);
    socket.on('close', end);
    const pour = () => {
      while (!socket.destroyed && sent < body.length) {
        const chunks = [...body.slice(sent, sent + piece)].map((byte) => `1\r\n${byte}\r\n`).join('');
        sent += piece;
        if (!socket.write(chunks)) return void socket.once('drain', pour);
      }
      if (!socket.destroyed) socket.write('0\r\n\r\n');
    };
    socket.write(
      `POST /api/v1${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    pour();
  });
}

/** Opens a stream of events and reads it. @returns the request, which the caller destroys */
export function openStream({ url, token }, id, after) {
  const headers = { authorization: `Bearer ${token}`, ...(after !== undefined && { 'last-event-id': after }) };
  const asked = request(`${url}/api/v1/executions/${id}/events`, { agent, headers }, (response) => response.resume());
  asked.on('error', () => {});
  asked.end();
  return asked;
}

/** @returns how often each status occurs, such as `200 x 5, 503 x 195` */
export function countStatuses(answers) {
  const counts = new Map();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${status} x ${count}`).join(', ');
}

/** Calls `work` for 0 to `count - 1`, `atATime` calls at a time. @returns their results, in order */
export async function inParallel(count, atATime, work) {
  const given = [];
  let next = 0;
  const one = async () => {
    while (next < count) {
      const i = next++;
      given[i] = await work(i);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, atATime) }, one));
  return given;
}
