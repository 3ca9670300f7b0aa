/** Sends one request after the other over one kept-alive connection, with the least client code that Node.js offers. */

import { Agent, request as send } from 'node:http';

/** @param expected - text that every answer must contain */
export async function socketCase(server, path, { method, headers, body }, expected) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const options = {
    host: '127.0.0.1',
    port,
    path,
    method,
    agent,
    headers: { ...headers, 'content-length': Buffer.byteLength(body) },
  };
  return {
    run: () =>
      new Promise((resolve, reject) => {
        const request = send(options, (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (part) => {
            text += part;
          });
          response.on('end', () =>
            response.statusCode === 200 && text.includes(expected)
              ? resolve()
              : reject(new Error(`${response.statusCode}: ${text}`)),
          );
        });
        request.on('error', reject);
        request.end(body);
      }),
  };
}
