import { createServer } from 'node:http';

const MAX_PORTS = 20;

/** Listens on loopback, on `port` or on the next free port. */
export async function listenFrom(port, listener) {
  for (let current = port; ; current++) {
    const server = createServer(listener);
    try {
      await new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(current, '127.0.0.1', resolve);
      });
      if (current > port) console.log(`\nPort ${port} is in use; the next free port is ${current}.`);
      return { server, url: `http://127.0.0.1:${current}` };
    } catch (error) {
      if (error.code !== 'EADDRINUSE' || current >= port + MAX_PORTS) throw error;
    }
  }
}
