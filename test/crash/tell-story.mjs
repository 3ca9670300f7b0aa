/** Tells what is broken, and what happened to the first execution that it happened to. */

const MOST_PROBLEMS = 8;
const LONGEST_STORY = 80;

/** @param problem - names an execution by its id; the ledger's lines of it are told, one a line */
export function tellStory(lines, problem) {
  const [id] = /exec_\w+/.exec(problem) ?? [];
  if (id === undefined) return [];
  const begin = lines[0].at;
  const story = [`what happened to ${id}:`];
  for (const line of lines) {
    const said = describe(line, id);
    if (said !== undefined)
      story.push(`  ${(line.at - begin).toFixed(1).padStart(9)} ${line.pid} ${line.what} ${said}`);
  }
  const left = story.length - LONGEST_STORY;
  const shown = left > 0 ? [...story.slice(0, LONGEST_STORY), `  and ${left} lines more`] : story;
  return [shown.join('\n')];
}

/** What a line says of an execution; undefined when it is not about it. */
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
  if (!own) return what === 'joined' || what === 'lost' ? '' : undefined;
  const parts = [`epoch ${own.epoch}`, own.result, ...(own.steps ?? []).map(toText), own.status, own.release];
  return parts.filter((part) => part !== undefined).join(' ');
}

const toText = ({ key, attempts, final }) => `${key.slice(0, 6)}#${attempts}${final ? '' : ' to be retried'}`;

/** @returns lines to print */
export function firstProblems(problems) {
  const shown = problems.slice(0, MOST_PROBLEMS);
  // The story stands behind what is broken.
  const story = problems.slice(MOST_PROBLEMS).find((problem) => problem.startsWith('what happened'));
  const more = problems.length - shown.length - (story ? 1 : 0);
  const lines = [...shown, ...(more > 0 ? [`and ${more} more`] : []), ...(story ? [story] : [])];
  return lines.map((problem) => problem.trim().replace(/^/gm, '    '));
}
