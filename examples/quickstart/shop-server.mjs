import { createServer } from 'node:http';

const CUSTOMERS = {
  ada: { name: 'Ada', city: 'Lyon', tier: 'silver', orders: 12 },
  grace: { name: 'Grace', city: 'Oslo', tier: 'standard', orders: 0 },
};

/**
 * Starts the shop that the example calls: customers, and a warehouse that is busy at the first request.
 * It listens on loopback only, on a free port.
 */
export async function startShop() {
  let reservations = 0;
  const server = createServer((request, response) => {
    const reply = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const { pathname } = new URL(request.url, 'http://shop');
    const [, kind, id] = pathname.split('/');
    if (kind === 'customers') {
      const customer = CUSTOMERS[decodeURIComponent(id ?? '')];
      return customer ? reply(200, customer) : reply(404, { error: 'no such customer' });
    }
    if (kind === 'reservations' && request.method === 'POST') {
      request.resume();
      reservations += 1;
      return reservations === 1 ? reply(503, { error: 'busy' }) : reply(201, { id: `R-${4000 + reservations}` });
    }
    return reply(404, { error: 'not found' });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, close: () => new Promise((resolve) => server.close(resolve)) };
}
