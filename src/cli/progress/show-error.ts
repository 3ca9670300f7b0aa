/** The details and the stack of an error as lines of text for people. */

import { oneLine } from '../terminal/text.ts';

/** What a record or a line of the log has of an error. Anything else may come from a server. */
interface ShownError {
  readonly details?: unknown;
  readonly stack?: unknown;
  readonly cause?: unknown;
}

const MAX_CAUSES = 5;
/** Places in the runtime and in packages. */
const FOREIGN = /\(?(?:node:|ext:|native\b)|[\\/]node_modules[\\/]/;

/** The lines that follow the message of an error, not indented. */
export function describeError({ details, stack, cause }: ShownError): string[] {
  const lines: string[] = [];
  if (typeof details === 'object' && details !== null) lines.push(`details ${oneLine(JSON.stringify(details))}`);
  return [...lines, ...describeStack(stack), ...describeCause(cause, MAX_CAUSES)];
}

/**
 * The frames, without those that only called the code of the project. When the first one is not in that code, the first one that is
 * comes before all.
 */
function describeStack(stack: unknown): string[] {
  if (typeof stack !== 'string') return [];
  const frames = stack.split('\n').flatMap((line) => (/^\s+at /.test(line) ? [oneLine(line.trim())] : []));
  const own = frames.filter((frame) => !FOREIGN.test(frame));
  const [first, last] = [own[0], own.at(-1)];
  if (first === undefined || last === undefined) return frames;
  const shown = frames.slice(0, frames.lastIndexOf(last) + 1);
  return first === shown[0] ? shown : [`in ${first.slice('at '.length)}`, ...shown];
}

function describeCause(cause: unknown, left: number): string[] {
  if (typeof cause !== 'object' || cause === null || left === 0) return [];
  const { name, code, message, stack, cause: inner } = cause as Readonly<Record<string, unknown>>;
  const kind = [name, code].filter((part) => typeof part === 'string' && part !== '').join(' ');
  const text = `caused by ${kind || 'Error'}: ${typeof message === 'string' ? message : ''}`;
  return [oneLine(text), ...describeStack(stack).map((frame) => `  ${frame}`), ...describeCause(inner, left - 1)];
}
