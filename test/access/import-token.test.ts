/** Imported tokens: the host sets a token by the hash of its value, before the first start. */

import { describe, expect, it } from 'vitest';
import { memoryTokens } from '../../src/adapters/storage/memory/tokens.ts';
import { createTokenValue, tokenDigest } from '../../src/engine/access/rules/token-value.ts';
import { createTokens, type ImportedToken } from '../../src/engine/access/rules/tokens.ts';
import { createIdSource } from '../../src/engine/execution/id.ts';
import { manualClock } from '../../src/entries/testing.ts';

function made(store = memoryTokens()) {
  const clock = manualClock();
  return { clock, store, tokens: createTokens({ store, clock, ids: createIdSource(), brand: 'service' }) };
}
const value = createTokenValue('service');
const hash = tokenDigest(value);
const PRESET: ImportedToken = { hash, name: 'preset', scopes: ['read:executions'] };

describe('an imported token', () => {
  it('is valid with its value, and is listed without the last characters of the value', async () => {
    const { tokens, clock } = made();
    const item = await tokens.import({ ...PRESET, plan: 'pro', expiresIn: 60 });
    expect(await tokens.verify(value)).toEqual({
      tokenId: item.id,
      name: 'preset',
      scopes: ['read:executions'],
      plan: 'pro',
    });
    expect(item).toEqual({
      id: expect.stringMatching(/^tok_[0-9A-Z]{26}$/),
      name: 'preset',
      scopes: ['read:executions'],
      plan: 'pro',
      last4: '',
      createdAt: clock.now(),
      expiresAt: clock.now() + 60_000,
    });
    expect(JSON.stringify(await tokens.list())).not.toContain(hash);
    await tokens.revoke(item.id);
    await expect(tokens.verify(value)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('that is imported again stays one token: the same id, the new name, scopes and plan, the expiry from the first import', async () => {
    const { tokens, clock } = made();
    const first = await tokens.import({ ...PRESET, expiresIn: 60 });
    await tokens.verify(value);
    await clock.advance(10_000);
    const second = await tokens.import({
      ...PRESET,
      hash: hash.toUpperCase(),
      name: 'renamed',
      scopes: ['admin'],
      plan: 'pro',
      expiresIn: 120,
    });
    const expected = { name: 'renamed', scopes: ['admin'], plan: 'pro', expiresAt: first.createdAt + 120_000 };
    expect(second).toMatchObject({ id: first.id, createdAt: first.createdAt, ...expected });
    expect(await tokens.list()).toEqual([second]);
    expect(await tokens.verify(value)).toMatchObject({ scopes: ['admin'] });
    expect((await tokens.import({ ...PRESET })).expiresAt).toBeUndefined();
  });

  it('that is imported again without a change is not written', async () => {
    const { tokens, store } = made();
    const first = await tokens.import(PRESET);
    store.put = store.delete = () => {
      throw new Error('written');
    };
    expect(await tokens.import({ ...PRESET, scopes: [...PRESET.scopes, ...PRESET.scopes] })).toEqual(first);
  });

  it('that several processes import at once is stored once, with the last of what they say', async () => {
    const store = memoryTokens();
    const all = Array.from({ length: 20 }, (_, i) => made(store).tokens.import({ ...PRESET, name: `n${i % 2}` }));
    await Promise.all(all);
    const { tokens } = made(store);
    expect(await tokens.list()).toMatchObject([{ scopes: ['read:executions'] }]);
    expect(await tokens.verify(value)).toMatchObject({ scopes: ['read:executions'] });
  });

  it('counts as the first token of the store', async () => {
    const { tokens } = made();
    await tokens.import(PRESET);
    expect(await tokens.createFirst({ name: 'admin', scopes: ['admin'] })).toBeUndefined();
  });

  it.each([
    [{ ...PRESET, hash: value }, 'hash'],
    [{ ...PRESET, hash: hash.slice(1) }, 'hash'],
    [{ name: 'x', scopes: ['admin'] }, 'hash'],
    [{ ...PRESET, name: 'a\nb' }, 'name'],
    [{ ...PRESET, scopes: [] }, 'scopes'],
    [{ ...PRESET, token: value }, ''],
  ])('%# is refused with the place of the problem, and the message does not hold the value', async (given, path) => {
    const { tokens, store } = made();
    const failure = await tokens.import(given as never).catch((error) => error);
    expect(failure).toMatchObject({ code: 'INVALID_REQUEST', details: { issues: [{ path }] } });
    expect(JSON.stringify([failure.message, failure.details])).not.toContain(value);
    expect(await store.list()).toEqual([]);
  });

  it('`create` takes no hash', async () => {
    await expect(made().tokens.create(PRESET as never)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});
