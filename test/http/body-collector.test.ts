import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { addressRules } from '../../src/adapters/http/address-rules.ts';
import { admitRequest } from '../../src/adapters/http/admit-request.ts';
import { bodyCollector } from '../../src/adapters/http/body-collector.ts';

const request = admitRequest({ method: 'GET', url: 'https://peer.example/x' }, addressRules());

function heapInUse(): number {
  setFlagsFromString('--expose_gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

describe('the pieces of a body', () => {
  it('are joined in their order, with any sizes', () => {
    const collector = bodyCollector(request, { status: 200, headers: {} }, new AbortController().signal);
    const sizes = [0, 1, 5_000, 1, 4_095, 4_096, 3, 100_000, 4_000, ...Array(500).fill(200), 65_536, 2];
    const all: Buffer[] = [];
    for (const [i, size] of sizes.entries()) {
      const piece = Buffer.alloc(size, i);
      all.push(Buffer.from(piece));
      collector.add(piece);
      // A runtime may reuse a small buffer.
      if (size < 4_096) piece.fill(255);
    }
    expect(Buffer.compare(Buffer.from(collector.join()), Buffer.concat(all))).toBe(0);
  });

  it('of one byte take no object each: 65,000 of them take less than 1 MiB', () => {
    const collector = bodyCollector(request, { status: 200, headers: {} }, new AbortController().signal);
    const before = heapInUse();
    for (let i = 0; i < 65_000; i++) collector.add(new Uint8Array(1));
    expect(heapInUse() - before).toBeLessThan(1024 * 1024);
    expect(collector.join().byteLength).toBe(65_000);
  });

  it('are refused if there are very many of very few bytes, and the call is not retryable', () => {
    const collector = bodyCollector(request, { status: 200, headers: {} }, new AbortController().signal);
    const pour = (size: number) => {
      for (let i = 0; i < 100_000; i++) collector.add(new Uint8Array(size));
    };
    expect(() => pour(1)).toThrow(
      expect.objectContaining({ code: 'AGENT_FAILED', retryable: false, details: { reason: 'fragmented' } }),
    );
    const fair = bodyCollector(request, { status: 200, headers: {} }, new AbortController().signal);
    for (let i = 0; i < 100_000; i++) fair.add(new Uint8Array(20));
    expect(fair.join().byteLength).toBe(2_000_000);
  });
});
