/** Measures and prints what a million waiting executions cost. */

const TIMEOUT_MS = 3_600_000;

/** @param options - `measure`, which runs a script */
export async function printWaiting({ measure }) {
  console.error('waiting: 1,000,000 executions');
  const { lines, failed } = await measure(['--expose-gc', 'durable/waiting.mjs'], { timeoutMs: TIMEOUT_MS });
  console.log(failed ? `Waiting executions: failed: ${failed}\n` : `${lines.join('\n')}\n`);
}
