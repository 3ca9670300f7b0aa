/** The names of tools: in a URL, each is one segment of the path. */

const MAX_LENGTH = 256;

/** Why a tool can't have this name, or undefined. */
export function toolNameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name === '.' || name === '..') return 'can not be `.` or `..`, which lead to another place of the server';
  if (name.length > MAX_LENGTH) return `can have at most ${MAX_LENGTH} characters`;
  return /\p{Surrogate}/u.test(name) ? 'has half of a character, which can not be sent' : undefined;
}
