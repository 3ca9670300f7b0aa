/** Compares the offers with the known prices. A shop that did not answer keeps its known prices. */
export default function compare({ input: { known, shops } }) {
  const prices = { ...known };
  const drops = [];
  let offers = 0;
  for (const [shop, list] of Object.entries(shops)) {
    for (const { sku, price } of list ?? []) {
      const key = `${shop}/${sku}`;
      if (price < prices[key]) drops.push({ shop, sku, from: prices[key], to: price });
      prices[key] = price;
      offers += 1;
    }
  }
  const silent = Object.keys(shops).filter((shop) => !shops[shop]);
  return { prices, drops, offers, silent };
}
