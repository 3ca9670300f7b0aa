/** Prints the problems of definitions as a compiler does. */

import { type DefinitionIssue, type FileIssues, issueParts } from '../start.ts';
import type { Colors } from '../terminal/output.ts';
import { count } from '../terminal/text.ts';

/** One issue: its place and message, its lines of the source, and the help; without a line end. */
export function printIssue(issue: DefinitionIssue, colors: Colors): string {
  const { place, path, message, frame, help } = issueParts(issue);
  const where = [colors.bold(place), path].filter((part) => part !== '').join(' ');
  const lines = [`${where}${where ? ': ' : ''}${colors.red(message)}`];
  for (const line of frame === '' ? [] : frame.split('\n')) lines.push(printFrameLine(line, colors));
  if (help) lines.push(`${colors.cyan('help:')} ${help}`);
  return lines.join('\n');
}

function printFrameLine(line: string, colors: Colors): string {
  const [, gutter = '', rest = ''] = /^(\s*\d*\s*\|)(.*)$/s.exec(line) ?? [undefined, '', line];
  return colors.dim(gutter) + (/^\s*\^+$/.test(rest) ? colors.red(rest) : rest);
}

/** The types of an ensemble, and what may be anything; without a line end. */
export function printTypes(file: string, types: ReturnType<NonNullable<FileIssues['types']>>, colors: Colors): string {
  const { ensemble, inputs, steps, outputs, unknown } = types;
  const rows = [
    ['input', inputs],
    ...steps.map(({ name, type }) => [`${name}.output`, type]),
    ...outputs.map(({ name, type }) => [`outputs.${name}`, type]),
  ] as const;
  const width = Math.min(MAX_NAME_WIDTH, Math.max(...rows.map(([name]) => name.length)));
  const lines = [`${colors.bold(file)}: ${ensemble}`];
  for (const [name, type] of rows) lines.push(`  ${name.padEnd(width)}  ${type}`);
  for (const { line, column, message } of unknown)
    lines.push(`  ${colors.yellow('not known')} ${colors.dim(`${line}:${column}`)} ${message}`);
  return lines.join('\n');
}

const MAX_NAME_WIDTH = 32;

/** Such as `3 problems in 2 of 5 files`. */
export function summarize(files: readonly FileIssues[]): string {
  const problems = files.reduce((sum, { issues }) => sum + issues.length, 0);
  if (problems === 0) return `${count(files.length, 'file')}, no problems`;
  const broken = files.filter(({ issues }) => issues.length > 0).length;
  const where = files.length === 1 ? '1 file' : `${broken} of ${count(files.length, 'file')}`;
  return `${count(problems, 'problem')} in ${where}`;
}
