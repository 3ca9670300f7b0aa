/** Instants, durations and numbers as people read them. */

const S = 1_000;
const MIN = 60 * S;
const H = 60 * MIN;
const D = 24 * H;

/** Such as `12 ms`, `3.4 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < S) return `${Math.round(ms)} ms`;
  if (ms < 10 * S) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < MIN) return `${Math.floor(ms / S)} s`;
  if (ms < H) return pair(ms, MIN, 'min', S, 's');
  return ms < D ? pair(ms, H, 'h', MIN, 'min') : pair(ms, D, 'd', H, 'h');
}

function pair(ms: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeUnit}${rest === 0 ? '' : ` ${rest} ${smallUnit}`}`;
}

const INSTANT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

/** The name of the browser's time zone. */
export const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** In the time zone of the browser. An instant of today has no date. */
export function formatInstant(instant: number, now = Date.now()): string {
  const date = new Date(instant);
  return date.toDateString() === new Date(now).toDateString() ? TIME.format(date) : INSTANT.format(date);
}

/** Such as `3 min ago` and `in 2 h`. */
export function formatDistance(instant: number, now = Date.now()): string {
  const ms = instant - now;
  if (Math.abs(ms) < S) return 'now';
  const shown = roughly(Math.abs(ms));
  return ms < 0 ? `${shown} ago` : `in ${shown}`;
}

function roughly(ms: number): string {
  if (ms < MIN) return `${Math.floor(ms / S)} s`;
  if (ms < H) return `${Math.floor(ms / MIN)} min`;
  return ms < D ? `${Math.floor(ms / H)} h` : `${Math.floor(ms / D)} d`;
}

const NUMBER = new Intl.NumberFormat('en-US');

export function formatNumber(number: number): string {
  return NUMBER.format(number);
}

/** Such as `1 step` and `2 steps`. */
export function count(number: number, one: string, several = `${one}s`): string {
  return `${formatNumber(number)} ${number === 1 ? one : several}`;
}

/** A text that may come from anywhere, on one line: control and direction characters are shown, so that they can't move or hide anything. */
export function oneLine(text: string, max = 200): string {
  const shown = visible(text.slice(0, max + 1)).replace(/\s+/g, ' ');
  return text.length > max ? `${shown.slice(0, max)}...` : shown;
}

// Control characters except line feeds and tabs, direction marks, and characters without width.
const UNSEEN = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu;

/** Replaces characters that can't be seen by their code. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
