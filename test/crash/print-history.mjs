/** Formats the violations, and the history of the first execution that has one. */

const MAX_PROBLEMS = 8;
const MAX_LINES = 80;

/** @param problem - a text with the id of an execution. @returns the history of that execution, one event a line */
export function historyOf(lines, problem) {
  const [id] = /exec_\w+/.exec(problem) ?? [];
  if (id === undefined) return [];
  const begin = lines[0].at;
  const all = [`what happened to ${id}:`];
  for (const line of lines) {
    const text = describe(line, id);
    if (text !== undefined) all.push(`  ${(line.at - begin).toFixed(1).padStart(9)} ${line.pid} ${line.what} ${text}`);
  }
  const left = all.length - MAX_LINES;
  const shown = left > 0 ? [...all.slice(0, MAX_LINES), `  and ${left} more lines`] : all;
  return [shown.join('\n')];
}

/** The part of a line that concerns an execution; undefined if the line does not concern it. */
function describe({ what, id, key, attempt, steps, all, child, target, signal, point, message, error }, wanted) {
  if (id === wanted) {
    if (steps) return steps.map(toText).join(', ');
    return key === undefined ? '' : `${key.slice(0, 6)}#${attempt}`;
  }
  if (what === 'log') return `${message} ${error ?? ''}`.trim();
  if (what === 'point') return point;
  if (child !== undefined) return `${child} ${signal ?? ''}`;
  if (target !== undefined) return `${target}`;
  const own = all?.find((one) => one.id === wanted);
  if (!own) return what === 'registered' || what === 'lost' ? '' : undefined;
  const parts = [`epoch ${own.epoch}`, own.result, ...(own.steps ?? []).map(toText), own.status, own.release];
  return parts.filter((part) => part !== undefined).join(' ');
}

const toText = ({ key, attempts, final }) => `${key.slice(0, 6)}#${attempts}${final ? '' : ' to be retried'}`;

/** @returns lines to print */
export function firstProblems(problems) {
  const shown = problems.slice(0, MAX_PROBLEMS);
  // The history of the execution follows the violations.
  const history = problems.slice(MAX_PROBLEMS).find((problem) => problem.startsWith('what happened'));
  const more = problems.length - shown.length - (history ? 1 : 0);
  const lines = [...shown, ...(more > 0 ? [`and ${more} more`] : []), ...(history ? [history] : [])];
  return lines.map((problem) => problem.trim().replace(/^/gm, '    '));
}
