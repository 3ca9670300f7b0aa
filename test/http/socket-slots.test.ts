import { describe, expect, it } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';
import { socketSlots } from '../../src/adapters/http/socket-slots.ts';

const never = new AbortController().signal;

function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

const turns = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

describe('socket slots', () => {
  it('limit the exchanges with one host, in order; another host does not wait', async () => {
    const slots = socketSlots(2);
    const gates = [gate(), gate(), gate()];
    const started: string[] = [];
    const done = gates.map((each, i) =>
      slots.run('a', never, async () => {
        started.push(`a${i}`);
        await each.opened;
      }),
    );
    const other = slots.run('b', never, async () => void started.push('b'));
    await other;
    expect(started).toEqual(['a0', 'a1', 'b']);
    gates[1]?.open();
    await done[1];
    await turns();
    expect(started).toEqual(['a0', 'a1', 'b', 'a2']);
    for (const each of gates) each.open();
    await Promise.all(done);
  });

  it('an exchange that is aborted while it waits leaves the queue at once, and never starts', async () => {
    const slots = socketSlots(1);
    const first = gate();
    const controller = new AbortController();
    const started: string[] = [];
    const running = slots.run('a', never, () => first.opened);
    const waiting = slots.run('a', controller.signal, async () => void started.push('aborted'));
    const next = slots.run('a', never, async () => void started.push('next'));
    controller.abort('enough');
    await expect(waiting).rejects.toBe('enough');
    expect(started).toEqual([]);
    first.open();
    await Promise.all([running, next]);
    expect(started).toEqual(['next']);
  });

  it('a failed exchange frees its slot, and a host is removed with its last exchange', async () => {
    const slots = socketSlots(1);
    for (let i = 0; i < 1_000; i++) {
      await expect(slots.run(`host${i}`, never, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    }
    await turns();
    expect(slots.hosts).toBe(0);
    expect(await slots.run('host1', never, async () => 'again')).toBe('again');
  });

  it('the time in the queue counts against the timeout of the request', async () => {
    let asked = 0;
    const http = fetchHttp({
      maxSocketsPerHost: 1,
      fetch: (_url, init) => {
        asked++;
        return new Promise((_resolve, reject) =>
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
        );
      },
    });
    const controller = new AbortController();
    const first = http.send({ method: 'GET', url: 'https://peer.example/', signal: controller.signal });
    const second = http.send({ method: 'GET', url: 'https://peer.example/', timeoutMs: 20 });
    await expect(second).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(asked).toBe(1);
    controller.abort('done');
    await expect(first).rejects.toBe('done');
  });
});
