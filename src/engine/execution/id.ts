/** Identifiers that sort by time: a prefix, 10 characters of time and 16 characters of randomness (80 bits). */

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const RANDOM_CHARACTERS = 16;
/** How many of the random characters a further id of the same millisecond changes, besides carries. */
const INCREASED_CHARACTERS = 8;
const SEED_BYTES = 16;

/** Creates ids and seeds. Each orchestrator has its own source, which draws nothing at import or construction. */
export interface IdSource {
  /**
   * The prefix and 26 characters. Each id is greater than the ids before it, also within a millisecond and after the clock was set
   * back. @param prefix - such as `exec_` @param now - Unix ms
   */
  id(prefix: string, now: number): string;
  /** 128 random bits as 32 hexadecimal characters. */
  seed(): string;
}

export function createIdSource(): IdSource {
  // Random bytes are drawn by the kilobyte: a call of getRandomValues costs more than an id.
  const pool = new Uint8Array(4096);
  let used = pool.length;
  let lastTime = Number.NEGATIVE_INFINITY;
  let timeText = '';
  /** The random characters of the last id, each as a number of 5 bits. */
  const last = new Uint8Array(RANDOM_CHARACTERS);

  const take = (count: number): number => {
    if (used + count > pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    const start = used;
    used += count;
    return start;
  };

  const beginTime = (time: number) => {
    lastTime = time;
    timeText = encodeTime(time);
    const start = take(RANDOM_CHARACTERS);
    for (let at = 0; at < RANDOM_CHARACTERS; at++) last[at] = (pool[start + at] as number) & 31;
  };

  /** Adds a random number of 1 to 2^40 to the random characters. @returns false if they have no greater value */
  const increase = (): boolean => {
    const start = take(INCREASED_CHARACTERS);
    let carry = 1;
    for (let at = RANDOM_CHARACTERS - 1; at >= 0; at--) {
      const offset = at - (RANDOM_CHARACTERS - INCREASED_CHARACTERS);
      if (offset < 0 && carry === 0) return true;
      const sum = (last[at] as number) + carry + (offset < 0 ? 0 : (pool[start + offset] as number) & 31);
      last[at] = sum & 31;
      carry = sum >> 5;
    }
    return carry === 0;
  };

  return {
    id(prefix, now) {
      if (now > lastTime) beginTime(now);
      else if (!increase()) beginTime(lastTime + 1);
      return prefix + timeText + text(last, 0, ALPHABET_CODES);
    },
    seed() {
      const start = take(SEED_BYTES);
      return text(pool, start, HIGH_HEX_CODES) + text(pool, start, LOW_HEX_CODES);
    },
  };
}

// One call for sixteen characters: text that is joined piece by piece keeps each piece in memory.
function text(bytes: Uint8Array, start: number, codes: Uint8Array): string {
  const at = (offset: number) => codes[bytes[start + offset] as number] as number;
  return String.fromCharCode(
    at(0),
    at(1),
    at(2),
    at(3),
    at(4),
    at(5),
    at(6),
    at(7),
    at(8),
    at(9),
    at(10),
    at(11),
    at(12),
    at(13),
    at(14),
    at(15),
  );
}

/** The code of the character for each byte. */
const ALPHABET_CODES = Uint8Array.from({ length: 256 }, (_, byte) => ALPHABET.charCodeAt(byte & 31));
const HEX = '0123456789abcdef';
const HIGH_HEX_CODES = Uint8Array.from({ length: 256 }, (_, byte) => HEX.charCodeAt(byte >> 4));
const LOW_HEX_CODES = Uint8Array.from({ length: 256 }, (_, byte) => HEX.charCodeAt(byte & 15));

/**
 * An id without randomness: the same time and bytes give the same id.
 *
 * @param time - Unix ms, by which the id sorts
 * @param bytes - at least 16, such as a hash
 */
export function derivedId(prefix: string, time: number, bytes: Uint8Array): string {
  let text = prefix + encodeTime(time);
  for (let i = 0; i < RANDOM_CHARACTERS; i++) text += ALPHABET[(bytes[i] as number) & 31];
  return text;
}

/** How all ids of an instant begin. @param time - Unix ms */
export function idTime(prefix: string, time: number): string {
  return prefix + encodeTime(time);
}

function encodeTime(now: number): string {
  let rest = Math.max(0, Math.floor(now));
  let text = '';
  for (let i = 0; i < 10; i++) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** The form of every execution's id: a generated one, also written `exec-...`, or one that a caller gave. A URL path changes `.` and `..`. */
export const EXECUTION_ID = /^(?:exec[_-][0-9A-Z]{26}|(?!exec_|\.{1,2}$)[A-Za-z0-9_.:-]{1,128})$/;
const GENERATED = /^exec[_-][0-9A-Z]{26}$/;

/** Whether the library created this id, or one of the same form. */
export function isGeneratedId(id: string): boolean {
  return GENERATED.test(id);
}

/** Normalizes an execution id from a caller: `exec-` of a generated id is replaced by `exec_`. */
export function normalizeExecutionId(id: string): string {
  // A value that is not text becomes an unknown id.
  const text = String(id);
  return text.startsWith('exec-') && GENERATED.test(text) ? `exec_${text.slice(5)}` : text;
}
