/** The ids that one process creates. */

import { describe, expect, it, vi } from 'vitest';
import { createIdSource } from '../../src/engine/execution/id.ts';

const NOW = Date.UTC(2026, 0, 1);

describe('ids of one process', () => {
  it('increase strictly, within a millisecond, over many, and after the clock was set back', () => {
    const ids = createIdSource();
    const instants = Array.from({ length: 50_000 }, (_, i) => NOW + Math.floor(i / 5000));
    const made = [...instants, NOW - 86_400_000, NOW - 1, NOW].map((now) => ids.id('exec_', now));
    expect(made.filter((id, i) => i > 0 && id <= (made[i - 1] as string))).toEqual([]);
    expect(new Set(made.map((id) => /^exec_[0-9A-HJKMNP-TV-Z]{26}$/.test(id)))).toEqual(new Set([true]));
  });

  it('increase after the greatest random part: then the next millisecond begins', () => {
    const drawn = vi.spyOn(crypto, 'getRandomValues').mockImplementation((bytes) => {
      if (bytes) new Uint8Array(bytes.buffer).fill(255);
      return bytes;
    });
    const ids = createIdSource();
    const [first, second] = [ids.id('exec_', NOW), ids.id('exec_', NOW)];
    drawn.mockRestore();
    expect(first.slice(-16)).toBe('Z'.repeat(16));
    expect(second > first).toBe(true);
  });

  it('of two processes differ, although they begin in the same millisecond', () => {
    const [one, other] = [createIdSource(), createIdSource()];
    const made = Array.from({ length: 10_000 }, () => [one.id('', NOW), other.id('', NOW)]).flat();
    expect(new Set(made).size).toBe(20_000);
  });
});
