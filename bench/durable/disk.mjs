/** Measures how long the disk takes to acknowledge a write: the lower bound for a durable commit. */

import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../statistics.mjs';

const WRITES = 300;

/** @returns the median of a write of 8 kB and its `fdatasync`, in ms */
export function measureDisk(folder) {
  const path = join(folder, 'disk');
  const file = openSync(path, 'w');
  const block = Buffer.alloc(8192, 1);
  const times = [];
  try {
    for (let i = 0; i < WRITES; i++) {
      const before = performance.now();
      // Always at the same position, like a log that is overwritten.
      writeSync(file, block, 0, block.length, 0);
      fdatasyncSync(file);
      times.push(performance.now() - before);
    }
  } finally {
    closeSync(file);
    rmSync(path);
  }
  return median(times);
}
