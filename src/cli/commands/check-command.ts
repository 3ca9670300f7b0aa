/** `ensemble check`: what becomes of the executions of a store or a server when this project is deployed. Reads only. */

import { requireProject } from '../project/find-target.ts';
import { openApp } from '../project/open-app.ts';
import { printIssue } from '../project/print-issues.ts';
import { withService } from '../service/open-service.ts';
import { readStorage } from '../service/open-store.ts';
import { type CheckedExecution, createLiveCheck, type LiveCheck, openToCheck, shownFrom } from '../start.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { count, oneLine, printJson } from '../terminal/text.ts';

export interface CheckOptions {
  /** A store (sqlite:FILE, postgres://...) or the address of a server. */
  readonly against?: string;
  readonly token?: string;
  readonly dir?: string;
  readonly app?: string;
  readonly ensemble?: string;
  readonly json?: boolean;
}

/** @returns 1 if an execution would be stranded, or if the definitions have problems */
export async function check(
  options: CheckOptions,
  output: Output,
  { cwd, process }: { readonly cwd: string; readonly process: NodeJS.Process },
): Promise<number> {
  const { against, token, dir, app, ensemble, json } = options;
  if (against === undefined)
    throw wrongUsage('name what to check against: --against sqlite:FILE, postgres://... or the URL of a server');
  const inCode = app !== undefined && dir === undefined;
  const directory = inCode ? cwd : await requireProject(cwd, dir);
  const opened = await openToCheck(directory, app === undefined ? {} : await openApp(app, cwd, directory));
  const issues = shownFrom(cwd, directory, opened.files).flatMap((file) => file.issues);
  if (json && issues.length > 0) output.print(`${printJson({ issues })}\n`);
  for (const issue of issues) output.say(`${printIssue(issue, output.colors)}\n\n`);
  if (issues.length > 0) {
    output.say(`${output.colors.red('✗')} ${count(issues.length, 'problem')}; no execution was checked\n`);
    return 1;
  }
  const run = createLiveCheck(opened.options);
  const isServer = /^https?:/i.test(against);
  if (!isServer && token !== undefined) throw wrongUsage('--token is for a server, and --against names a store');
  if (!isServer) readStorage(against, cwd, '--against');
  const place = isServer ? { url: against, ...(token !== undefined && { token }) } : { storage: against };
  const found = await withService(place, { cwd, process }, (source) => run(source, ensemble));
  if (json) output.print(`${printJson(found)}\n`);
  else print(found, output);
  return found.stranded > 0 ? 1 : 0;
}

function print({ executions, ...counts }: LiveCheck, { colors, print, say }: Output): void {
  const { checked, continues, stranded, canMove, cannotMove } = counts;
  for (const one of executions) print(`${lineOf(one)}\n`);
  const moves =
    canMove + cannotMove === 0 ? '' : `; with another definition: ${canMove} can be moved, ${cannotMove} can't`;
  const mark = stranded > 0 ? colors.red('✗') : colors.green('✓');
  say(
    `${mark} ${count(checked, 'execution')}: ${continues} continue as they are, ${stranded} would be stranded${moves}\n`,
  );
  if (stranded > 0)
    say(
      'help: a process runs an execution only if it has all that its definition needs; keep that until they have ended\n',
    );
}

/** What is lacking, without the lines around the place in the definition. */
function shortLack(lacks: string): string {
  const lines = lacks.split('\n').filter((line) => !/^\s*(?:\d+ )?\|/.test(line));
  return oneLine(lines.join('\n').replace(/^ensemble `.*` has \d+ problems?:\s*/, ''));
}

function lineOf({ executionId, ensemble, status, version, lacks, difference, move }: CheckedExecution): string {
  const what = lacks === undefined ? 'continues' : `is stranded: ${shortLack(lacks)}`;
  const moved =
    move === 'can'
      ? '; can be moved'
      : difference
        ? `; can't be moved: ${difference.at}: ${oneLine(difference.reason)}`
        : '';
  return `${executionId}  ${oneLine(ensemble)} ${version.slice(0, 8)} ${status}  ${what}${moved}`;
}
