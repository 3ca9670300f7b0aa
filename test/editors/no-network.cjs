/** Preloaded into a server: a look-up or a connection is told on stderr, and refused. */

function refuse(what) {
  process.stderr.write(`NETWORK ${what}\n`);
  throw new Error(`no network: ${what}`);
}

require('node:net').Socket.prototype.connect = (...to) => refuse(JSON.stringify(to));
require('node:dns').lookup = (name) => refuse(name);
globalThis.fetch = (url) => refuse(String(url));
