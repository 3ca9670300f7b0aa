import { afterAll, beforeAll, describe, it } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';
import { nodeHttp } from '../../src/adapters/http/node-http.ts';
import { httpSuite } from '../../src/conformance/http-suite.ts';
import { type BadPeer, startBadPeer } from './bad-peer.ts';

let peer: BadPeer;
beforeAll(async () => {
  peer = await startBadPeer();
});
afterAll(() => peer.close());

httpSuite({
  name: 'fetchHttp',
  create: (options) => fetchHttp(options),
  peer: () => peer.baseUrl,
  test: { describe, it },
});
httpSuite({
  name: 'nodeHttp',
  create: (options) => nodeHttp(options),
  peer: () => peer.baseUrl,
  test: { describe, it },
});
