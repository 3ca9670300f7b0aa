/** HTTP suite: requests and responses arrive complete and unchanged. */

import { fails, fromBase64, type It, type SuiteContext, same, text } from './context.ts';

export function exchangeCases({ create, peer, send }: SuiteContext, it: It): void {
  it('sends method, path, query, headers and body, and returns status, headers and body', async () => {
    const body = JSON.stringify({ name: 'Zoë' });
    const url = `${peer()}/echo?a=1&b=%20x#part`;
    const headers = { 'X-Own': 'yes', 'content-type': 'application/json' };
    const answer = await send('/', { method: 'POST', url, headers, body });
    const seen = JSON.parse(text(answer)) as {
      method: string;
      url: string;
      headers: Record<string, string>;
      body: string;
    };
    same(answer.status, 200, 'status');
    same(seen.method, 'POST', 'method');
    same(seen.url, '/echo?a=1&b=%20x', 'path and query');
    same(seen.headers['x-own'], 'yes', 'own header');
    same(seen.headers['content-type'], 'application/json', 'content type');
    same(new TextDecoder().decode(fromBase64(seen.body)), body, 'body');
    same(answer.headers['x-one'], '1', 'answer header');
    same(answer.headers['x-many'], 'a, b', 'answer header that the peer sends twice');
  });

  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    it(`sends ${method}, written in lower case, with a body if the method has one`, async () => {
      const body = method === 'GET' ? undefined : 'content';
      const answer = await send('/echo', { method: method.toLowerCase(), body });
      const seen = JSON.parse(text(answer)) as { method: string; body: string; headers: Record<string, string> };
      same(seen.method, method, 'method');
      same(new TextDecoder().decode(fromBase64(seen.body)), body ?? '', 'body');
      // A runtime that would send a body with a length twice sends it in chunks.
      if (seen.headers['transfer-encoding'] !== 'chunked')
        same(seen.headers['content-length'], body && '7', 'content-length');
      same(seen.headers['content-type'], undefined, 'content type, which the request did not set');
    });
  }

  it('returns the answer to HEAD without a body', async () => {
    const answer = await send('/echo', { method: 'HEAD' });
    same(answer.status, 200, 'status');
    same(answer.body.byteLength, 0, 'body length');
  });

  it('refuses a body on GET and HEAD as INVALID_REQUEST', async () => {
    for (const method of ['GET', 'HEAD']) await fails(send('/echo', { method, body: 'x' }), 'INVALID_REQUEST', false);
  });

  it('sends and returns binary bodies byte for byte', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    same((await send('/bytes')).body.join(), bytes.join(), 'received bytes');
    const seen = JSON.parse(text(await send('/echo', { method: 'PUT', body: bytes }))) as { body: string };
    same(fromBase64(seen.body).join(), bytes.join(), 'sent bytes');
  });

  it('returns every status as an answer, also errors and statuses without a body', async () => {
    for (const status of [200, 201, 204, 304, 400, 404, 429, 500, 503]) {
      const answer = await send(`/status/${status}`);
      same(answer.status, status, 'status');
      same(text(answer), status === 204 || status === 304 ? '' : `status ${status}`, 'body');
    }
  });

  it('keeps concurrent exchanges apart', async () => {
    const client = create({ allow: ['127.0.0.0/8'] });
    const paths = Array.from({ length: 50 }, (_, i) => `/echo?i=${i}`);
    const answers = await Promise.all(paths.map((path) => client.send({ method: 'GET', url: peer() + path })));
    for (const [i, answer] of answers.entries())
      same((JSON.parse(text(answer)) as { url: string }).url, paths[i], 'url seen');
  });
}
