import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { nameLookups } from '../../src/adapters/http/name-lookups.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A system that never answers names that contain `silent`, and answers others with an address made from their length. */
function rig() {
  const asked: string[] = [];
  const ends = new Map<string, (error: Error) => void>();
  const resolve = nameLookups({
    async system(host) {
      asked.push(`system ${host}`);
      if (host.includes('silent')) await new Promise((_, reject) => ends.set(host, reject));
      return [`10.0.0.${host.length}`];
    },
    async servers(host) {
      asked.push(`servers ${host}`);
      if (host.includes('silent')) throw Object.assign(new Error('timed out'), { code: 'ETIMEOUT' });
      return [`10.0.1.${host.length}`];
    },
  });
  return { asked, resolve, end: (host: string) => ends.get(host)?.(new Error('no answer')) };
}

const turns = () => vi.advanceTimersByTimeAsync(0);

describe('names that no server answers', () => {
  it('another name is answered within 2 s with any number of them, and at once while one occupies the system', async () => {
    const { asked, resolve } = rig();
    const silent = Array.from({ length: 12 }, (_, i) => resolve(`silent${i}`).catch((error) => error.code));
    const good = resolve('good');
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await good).toEqual(['10.0.1.4']);
    expect(await Promise.all(silent.slice(1))).toEqual(Array(11).fill('ETIMEOUT'));
    expect(await resolve('other')).toEqual(['10.0.1.5']);
    // One of them occupies a thread, and no second one does.
    expect(asked.filter((one) => one.startsWith('system'))).toEqual(['system silent0']);
  });

  it('the system is asked again after it has answered', async () => {
    const { resolve, end } = rig();
    const silent = expect(resolve('silent')).rejects.toThrow('no answer');
    await vi.advanceTimersByTimeAsync(30_000);
    end('silent');
    await silent;
    expect(await resolve('good')).toEqual(['10.0.0.4']);
  });

  it('names that wait go to the system in their order while it answers in time', async () => {
    const { asked, resolve } = rig();
    const found = await Promise.all(['a', 'bb', 'ccc'].map(resolve));
    expect(found).toEqual([['10.0.0.1'], ['10.0.0.2'], ['10.0.0.3']]);
    expect(asked).toEqual(['system a', 'system bb', 'system ccc']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('1,000 concurrent calls for one name share one look-up; a later call makes another one', async () => {
    const { asked, resolve, end } = rig();
    const calls = Array.from({ length: 1_000 }, () => resolve('silent').catch((error) => error.message));
    await turns();
    end('silent');
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['no answer']));
    expect(asked).toEqual(['system silent']);
    void resolve('silent').catch(() => {});
    expect(asked).toEqual(['system silent', 'system silent']);
  });

  it('a name that fails delays no other name', async () => {
    const resolve = nameLookups({
      system: (host) => (host === 'bad' ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(['10.0.0.1'])),
    });
    const bad = expect(resolve('bad')).rejects.toThrow('ENOTFOUND');
    expect(await resolve('good')).toEqual(['10.0.0.1']);
    await bad;
  });
});
