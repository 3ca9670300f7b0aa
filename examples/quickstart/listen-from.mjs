import { createServer } from 'node:http';

const TRIES = 20;

/** Listens on loopback: on `port`, or on the next one that is free. */
export async function listenFrom(port, listener) {
  for (let tried = port; ; tried++) {
    const server = createServer(listener);
    try {
      await new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(tried, '127.0.0.1', resolve);
      });
      if (tried > port) console.log(`\nPort ${port} is taken; the next free one is ${tried}.`);
      return { server, url: `http://127.0.0.1:${tried}` };
    } catch (error) {
      if (error.code !== 'EADDRINUSE' || tried >= port + TRIES) throw error;
    }
  }
}
