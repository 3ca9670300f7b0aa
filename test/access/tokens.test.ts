import { describe, expect, it, vi } from 'vitest';
import { memoryTokens } from '../../src/adapters/storage/memory/tokens.ts';
import { createTokens, type NewToken } from '../../src/engine/access/rules/tokens.ts';
import { SCOPES } from '../../src/engine/access/token.ts';
import { createIdSource } from '../../src/engine/execution/id.ts';
import { manualClock } from '../../src/entries/testing.ts';

function made(brand = 'service') {
  const clock = manualClock();
  const store = memoryTokens();
  return { clock, store, tokens: createTokens({ store, clock, ids: createIdSource(), brand }) };
}

async function sha256Of(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

const READER: NewToken = { name: 'reader', scopes: ['read:executions'] };

describe('a token', () => {
  it('is sk-service-, 36 random characters and 6 characters of checksum, and is shown once', async () => {
    const { tokens, clock } = made();
    const created = await tokens.create({ ...READER, plan: 'pro', expiresIn: 60 });
    expect(created.token).toMatch(/^sk-service-[0-9A-Za-z]{42}$/);
    expect(created).toEqual({
      token: created.token,
      id: expect.stringMatching(/^tok_[0-9A-Z]{26}$/),
      name: 'reader',
      scopes: ['read:executions'],
      plan: 'pro',
      createdAt: clock.now(),
      expiresAt: clock.now() + 60_000,
    });
    expect(JSON.stringify(await tokens.list())).not.toContain(created.token);
  });

  it('is stored as its SHA-256 and its last four characters', async () => {
    const { tokens, store } = made();
    const { token } = await tokens.create(READER);
    const [stored] = await store.list();
    expect(stored).toMatchObject({ digest: await sha256Of(token), last4: token.slice(-4) });
    expect(JSON.stringify(stored)).not.toContain(token.slice(11, 30));
  });

  // Values of 44 to 78 bytes: SHA-256 processes up to 55 bytes as one block, more as two.
  it.each(['a', 'ten0letters', 'thirteen0long', 'fourteen0longs', 'x'.repeat(32)])(
    'each token of the brand %s has a digest of its own value, whichever was made or verified before',
    async (brand) => {
      const { tokens, store, clock } = made(brand);
      const values: string[] = [];
      for (let i = 0; i < 3; i++) {
        values.push((await tokens.create({ ...READER, name: `${i}` })).token);
        for (const [name, value] of values.entries())
          expect(await tokens.verify(value)).toMatchObject({ name: `${name}` });
        await clock.advance(1);
      }
      expect((await store.list()).map(({ digest }) => digest)).toEqual(await Promise.all(values.map(sha256Of)));
    },
  );

  it('has the brand in its prefix, and a token of another brand is refused', async () => {
    const acme = made('acme');
    const { token } = await acme.tokens.create(READER);
    expect(token).toMatch(/^sk-acme-/);
    await expect(made().tokens.verify(token)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(await acme.tokens.verify(token)).toMatchObject({ name: 'reader' });
  });

  it('has the plan `free` by default, never expires without expiresIn, and has each scope once', async () => {
    const { tokens, clock } = made();
    const created = await tokens.create({ name: 'n', scopes: ['admin', 'read:agents', 'admin'] });
    expect(created).toMatchObject({ plan: 'free', scopes: ['admin', 'read:agents'] });
    expect(created).not.toHaveProperty('expiresAt');
    await clock.advance(20 * 365 * 86_400_000);
    expect(await tokens.verify(created.token)).toMatchObject({ tokenId: created.id, plan: 'free' });
  });

  it('differs from others, and so does its id, even if the clock stops and Math.random is constant', async () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { tokens } = made();
    const all = await Promise.all(Array.from({ length: 500 }, () => tokens.create(READER)));
    random.mockRestore();
    expect(new Set(all.map(({ token }) => token)).size).toBe(500);
    expect(new Set(all.map(({ id }) => id)).size).toBe(500);
  });
});

describe('an invalid token is refused', () => {
  it.each<[string, object]>([
    ['scopes *', { name: 'n', scopes: ['*'] }],
    ['scopes in other case', { name: 'n', scopes: ['ADMIN'] }],
    ['scopes with a space', { name: 'n', scopes: ['admin '] }],
    ['__proto__ as a scope', { name: 'n', scopes: ['__proto__'] }],
    ['no scopes', { name: 'n', scopes: [] }],
    ['scopes as text', { name: 'n', scopes: 'admin' }],
    ['nested scopes', { name: 'n', scopes: [['admin']] }],
    ['too many scopes', { name: 'n', scopes: Array.from({ length: 101 }, () => 'admin') }],
    ['an empty name', { name: '', scopes: ['admin'] }],
    ['no name', { scopes: ['admin'] }],
    ['an unknown key', { name: 'n', scopes: ['admin'], id: 'tok_1' }],
    ['an unknown plan', { name: 'n', scopes: ['admin'], plan: 'gold' }],
    ...[0, -1, 1.5, '60', Number.POSITIVE_INFINITY, Number.NaN, null, 315_360_001].map(
      (expiresIn): [string, object] => [
        `expiresIn ${JSON.stringify(expiresIn)} ${typeof expiresIn}`,
        { ...READER, expiresIn },
      ],
    ),
  ])('%s', async (_what, given) => {
    const { tokens, store } = made();
    const failure = await tokens.create(given as NewToken).catch((error) => error);
    expect(failure).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(failure.details.issues.length).toBeGreaterThan(0);
    expect(await store.list()).toEqual([]);
  });

  it('a hundred thousand scopes cause one short problem', async () => {
    const scopes = Array.from({ length: 100_000 }, () => 'x');
    const failure = await made()
      .tokens.create({ name: 'n', scopes } as unknown as NewToken)
      .catch((error) => error);
    expect(failure.details.issues).toEqual([
      { path: 'scopes', message: 'has 100000 entries; at most 100 are allowed' },
    ]);
  });

  it('every scope of the specification is valid', async () => {
    const { tokens } = made();
    expect((await tokens.create({ name: 'n', scopes: SCOPES })).scopes).toEqual(SCOPES);
  });
});

describe('verify()', () => {
  it('accepts a token at expiresAt - 1 ms, and throws TOKEN_EXPIRED with expiredAt at expiresAt', async () => {
    const { tokens, clock } = made();
    const { token, expiresAt } = await tokens.create({ ...READER, expiresIn: 10 });
    await clock.advance(9_999);
    expect(await tokens.verify(token)).toMatchObject({ scopes: ['read:executions'] });
    await clock.advance(1);
    await expect(tokens.verify(token)).rejects.toMatchObject({
      code: 'TOKEN_EXPIRED',
      details: { expiredAt: expiresAt },
    });
  });

  it('a revoked token is deleted, and is never valid again', async () => {
    const { tokens } = made();
    const { token, id } = await tokens.create(READER);
    expect(await tokens.revoke(id)).toEqual({ id, revoked: true });
    await expect(tokens.verify(token)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(await tokens.list()).toEqual([]);
    await expect(tokens.revoke(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it.each([
    [
      'one character changed',
      (token: string) => `${token.slice(0, 20)}${token[20] === 'a' ? 'b' : 'a'}${token.slice(21)}`,
    ],
    ['a wrong checksum', (token: string) => `${token.slice(0, -1)}${token.endsWith('a') ? 'b' : 'a'}`],
    ['too short', (token: string) => token.slice(0, -1)],
    ['too long', (token: string) => `${token}a`],
    ['another prefix', (token: string) => token.replace('service', 'serviec')],
    ['a megabyte', () => `sk-service-${'a'.repeat(1_000_000)}`],
    ['not ASCII', (token: string) => `${token.slice(0, 20)}ü${token.slice(21)}`],
    ['empty', () => ''],
  ])('%s is refused without a call of the store', async (_what, change) => {
    const { tokens, store } = made();
    const { token } = await tokens.create(READER);
    const find = vi.spyOn(store, 'findByDigest');
    await expect(tokens.verify(change(token))).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(find).not.toHaveBeenCalled();
    await tokens.verify(token);
    expect(find).toHaveBeenCalledTimes(1);
  });

  it('lastUsed is recorded to the minute, with at most one write a minute', async () => {
    const { tokens, store, clock } = made();
    const { token } = await tokens.create(READER);
    const touch = vi.spyOn(store, 'touch');
    await clock.advance(30_500);
    for (let i = 0; i < 100; i++) await tokens.verify(token);
    expect(touch).toHaveBeenCalledTimes(1);
    expect((await tokens.list())[0]?.lastUsed).toBe(clock.now() - 30_500);
    await clock.advance(60_000);
    for (let i = 0; i < 100; i++) await tokens.verify(token);
    expect(touch).toHaveBeenCalledTimes(2);
  });

  it('lists the oldest first', async () => {
    const { tokens, clock } = made();
    for (const name of ['a', 'b', 'c']) {
      await tokens.create({ ...READER, name });
      await clock.advance(1);
    }
    expect((await tokens.list()).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });
});

describe('the first token of a store', () => {
  const ADMIN: NewToken = { name: 'admin', scopes: ['admin'], plan: 'enterprise' };

  it('is created if there is none', async () => {
    const { tokens } = made();
    const first = await tokens.createFirst(ADMIN);
    expect(first).toMatchObject({
      token: expect.stringMatching(/^sk-service-\w{42}$/),
      name: 'admin',
      plan: 'enterprise',
    });
    expect(await tokens.verify(first?.token as string)).toMatchObject({ tokenId: first?.id, scopes: ['admin'] });
    expect(await tokens.createFirst(ADMIN)).toBeUndefined();
    await tokens.create(READER);
    await tokens.revoke(first?.id as string);
    expect(await tokens.createFirst(ADMIN)).toBeUndefined();
    expect((await tokens.list()).map(({ name }) => name)).toEqual(['reader']);
  });

  it('is created once, also by several processes at the same time', async () => {
    const { store, clock } = made();
    const processes = Array.from({ length: 5 }, () =>
      createTokens({ store, clock, ids: createIdSource(), brand: 'service' }),
    );
    const firsts = await Promise.all(processes.map((tokens) => tokens.createFirst(ADMIN)));
    expect(firsts.filter((one) => one !== undefined)).toHaveLength(1);
    expect(await store.list()).toHaveLength(1);
  });

  it('is listed before all later tokens', async () => {
    const { tokens } = made();
    const first = await tokens.createFirst(ADMIN);
    const second = await tokens.create(READER);
    expect((await tokens.list()).map(({ id }) => id)).toEqual([first?.id, second.id]);
    expect(first?.id).toMatch(/^tok_[0-9A-Z]{26}$/);
  });

  it('is refused if it is malformed, and a failure of the store is thrown', async () => {
    const { tokens, store, clock } = made();
    await expect(tokens.createFirst({ name: '', scopes: ['admin'] })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    const put = () => Promise.reject(new Error('the disk is full'));
    const broken = createTokens({ store: { ...store, put }, clock, ids: createIdSource(), brand: 'service' });
    await expect(broken.createFirst(ADMIN)).rejects.toThrow('the disk is full');
  });
});
