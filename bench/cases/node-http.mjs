/** The same call over a real socket, with server and client in one process. */

import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { entry } from '../library.mjs';
import { post, serviceCase } from './http-service.mjs';
import { socketCase } from './socket-client.mjs';

export async function setup() {
  const { toNodeListener } = await import(pathToFileURL(join(entry, '..', 'node.js')).href);
  const { handler, token } = await serviceCase();
  return socketCase(
    createServer(toNodeListener(handler)),
    '/api/v1/execute/ensemble/bench',
    post(token),
    '"completed"',
  );
}
