// The name begins with `_`, so this file is not a script: scripts import it. Prices are in cents.
export const CATALOG = {
  'desk-oak': { name: 'Desk, oak', price: 34900 },
  'lamp-s': { name: 'Lamp, small', price: 3950 },
  'chair-02': { name: 'Chair', price: 12900 },
};

export const DISCOUNT_PERCENT = { gold: 10, silver: 5 };
