/** HTTP suite: requests that are refused before anything is sent, and what errors must not contain. */

import { fails, type It, reason, type SuiteContext, same } from './context.ts';

export function guardCases({ create, peer, send, ask }: SuiteContext, it: It): void {
  it('refuses headers that would break the message, before anything is sent', async () => {
    const bad: Record<string, string>[] = [
      { 'x-a': 'b\r\nx-c: d' },
      { 'x-a': 'b\n' },
      { 'x-a': 'b\0' },
      { 'x-a': '☃' },
      { 'x-a\r\nx-b': 'c' },
      { 'x a': 'b' },
      { 'x:a': 'b' },
      { '': 'b' },
      { Host: 'other.example' },
      { 'Content-Length': '1' },
      { 'transfer-encoding': 'chunked' },
      { Connection: 'close' },
      { 'x-a': '1', 'X-A': '2' },
    ];
    const before = await ask('/count/echo');
    for (const headers of bad) reason(await fails(send('/echo', { headers }), 'INVALID_REQUEST', false), 'header');
    same(await ask('/count/echo'), before, 'requests at the peer');
  });

  it('refuses local addresses and names that are not allowed, before anything is sent', async () => {
    const before = await ask('/count/echo');
    const { port } = new URL(peer());
    const closed = create({ allow: [] });
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'localhost', 'a.localhost.', '0']) {
      const error = await fails(
        closed.send({ method: 'GET', url: `http://${host}:${port}/echo` }),
        'INVALID_REQUEST',
        false,
      );
      reason(error, 'address');
    }
    same(await ask('/count/echo'), before, 'requests at the peer');
  });

  it('refuses URLs with another scheme or user info, and relative URLs', async () => {
    const urls = [
      'file:///etc/hosts',
      'data:text/plain,x',
      'ftp://a.example/',
      'javascript:1',
      '/echo',
      'http://user:pw@a.example/',
    ];
    for (const url of urls)
      reason(
        await fails(create({ allow: ['127.0.0.0/8'] }).send({ method: 'GET', url }), 'INVALID_REQUEST', false),
        'url',
      );
  });

  it('names the request in errors without query, credentials or body', async () => {
    const url = `${peer()}/reset?token=planted-secret-1`;
    const headers = { authorization: 'Bearer planted-secret-2' };
    const failing = create({ allow: ['127.0.0.0/8'] }).send({
      method: 'POST',
      url,
      headers,
      body: 'planted-secret-3',
      timeoutMs: 5_000,
    });
    const error = await fails(failing, 'AGENT_FAILED', true);
    if (!error.message.includes(`POST ${peer()}/reset`))
      throw new Error(`the message must name the method and the URL without its query: ${error.message}`);
    const everything = `${error.message} ${JSON.stringify(error.details)} ${String(error.cause)}`;
    if (everything.includes('planted-secret')) throw new Error(`the error contains a secret: ${everything}`);
  });
}
