import { createServer } from 'node:http';

const PAGE = 2;

/**
 * Starts three shops on loopback, on a free port. Each returns its offers in pages of two: `north` by `Link` headers, `south` by
 * cursors, and `west` by numbers, for callers with its token.
 */
export async function startShops(token) {
  const prices = {
    north: { chair: 120, desk: 340, lamp: 45 },
    south: { chair: 118, desk: 355, lamp: 49, shelf: 80 },
    west: { chair: 125, lamp: 44 },
  };
  const closed = new Set();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://shops');
    const [, shop] = pathname.split('/');
    const reply = (status, body, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    if (closed.has(shop)) return reply(503, { error: 'closed today' });
    const offers = Object.entries(prices[shop] ?? {}).map(([sku, price]) => ({ sku, price }));
    if (shop === 'north') {
      const from = Number(searchParams.get('from') ?? 0);
      const limit = Number(searchParams.get('limit'));
      const next = from + limit;
      const link = next < offers.length ? { link: `</north/offers?limit=${limit}&from=${next}>; rel="next"` } : {};
      return reply(200, offers.slice(from, next), link);
    }
    if (shop === 'south') {
      const from = offers.findIndex(({ sku }) => sku === searchParams.get('cursor')) + 1;
      const data = offers.slice(from, from + PAGE);
      return reply(200, { data, meta: { next: from + PAGE < offers.length ? data.at(-1).sku : null } });
    }
    if (request.headers.authorization !== `Bearer ${token}`) return reply(401, { error: 'who are you?' });
    const from = (Number(searchParams.get('page') ?? 1) - 1) * PAGE;
    return reply(200, { products: offers.slice(from, from + PAGE) });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    prices,
    closed,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
