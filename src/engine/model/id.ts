/** Identifiers: a prefix, 10 characters of time and 16 of randomness (80 bits), sorting by time. */

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const RANDOM_CHARACTERS = 16;

/** Makes ids and seeds; one per orchestrator, so that nothing is drawn when the library is imported or constructed. */
export interface IdSource {
  /** The prefix and 26 characters. @param prefix - such as `exec_`; @param now - Unix ms */
  id(prefix: string, now: number): string;
  /** 128 random bits as 32 hexadecimal characters. */
  seed(): string;
}

export function createIdSource(): IdSource {
  // Random bytes are drawn by the kilobyte: a call of getRandomValues costs more than the id itself.
  const pool = new Uint8Array(4096);
  let used = pool.length;
  let lastTime = -1;
  let timeText = '';

  const take = (count: number): number => {
    if (used + count > pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    const start = used;
    used += count;
    return start;
  };

  return {
    id(prefix, now) {
      if (now !== lastTime) {
        lastTime = now;
        timeText = encodeTime(now);
      }
      const start = take(RANDOM_CHARACTERS);
      let text = prefix + timeText;
      for (let i = 0; i < RANDOM_CHARACTERS; i++) text += ALPHABET[(pool[start + i] as number) & 31];
      return text;
    },
    seed() {
      const start = take(16);
      let text = '';
      for (let i = 0; i < 16; i++) text += HEX[pool[start + i] as number];
      return text;
    },
  };
}

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function encodeTime(now: number): string {
  let rest = Math.max(0, Math.floor(now));
  let text = '';
  for (let i = 0; i < 10; i++) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** Reads an execution id as callers may write it: `exec-` is taken for `exec_`. */
export function normalizeExecutionId(id: string): string {
  return id.startsWith('exec-') ? `exec_${id.slice(5)}` : id;
}
