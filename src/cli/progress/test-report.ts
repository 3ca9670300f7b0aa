/** Prints the result of tests: for people, and as JUnit XML for CI. */

import { printIssue } from '../project/print-issues.ts';
import { describeWay, isPassed, type TestReport } from '../start.ts';
import type { Output } from '../terminal/output.ts';
import { count, formatDuration, oneLine } from '../terminal/text.ts';

type TestResult = TestReport['files'][number]['tests'][number];

/** @param withCoverage - also the steps and branches that no test ran */
export function printReport(
  { files, passed, failed, coverage }: TestReport,
  withCoverage: boolean,
  output: Output,
): void {
  const { colors } = output;
  const lines: string[] = [];
  for (const { file, issues, tests } of files) {
    lines.push(colors.bold(file));
    for (const issue of issues) lines.push(printIssue(issue, colors), '');
    for (const test of tests) {
      const mark = isPassed(test) ? colors.green('✓') : colors.red('✗');
      lines.push(`  ${mark} ${oneLine(test.name)} ${colors.dim(formatDuration(test.took))}`);
      if (!isPassed(test)) lines.push(...describeFailure(test, output));
    }
  }
  if (withCoverage)
    for (const { ensemble, steps, ran, missing } of coverage) {
      lines.push('', `${colors.bold(ensemble)}: ${ran} of ${count(steps, 'step')} ran`);
      for (const { key, what } of missing) lines.push(`  ${colors.yellow('no test ran')} ${key} (${oneLine(what)})`);
    }
  output.print(`${lines.join('\n')}\n\n`);
  const total = `${count(passed + failed, 'test')}: ${passed} passed, ${failed} failed`;
  output.print(failed > 0 ? `${colors.red('✗')} ${total}\n` : `✓ ${total}\n`);
}

function describeFailure(test: TestResult, { colors }: Output): string[] {
  const { differences, problems } = test;
  const lines = problems.map((problem) => `      ${colors.red(oneLine(problem))}`);
  for (const { path, expected, was } of differences)
    lines.push(
      `      ${path}`,
      `        ${colors.green(`- expected ${oneLine(expected)}`)}`,
      `        ${colors.red(`+ was      ${oneLine(was)}`)}`,
    );
  lines.push(colors.dim(`      ${oneLine(describeWay(test))}`));
  return lines;
}

/** The result as JUnit XML. */
export function toJunit({ files, passed, failed }: TestReport): string {
  const suites = files.map(({ file, tests, issues }) => {
    const cases = tests.map(({ name, took, differences, problems, ...test }) => {
      const about = `    <testcase classname="${escaped(file)}" name="${escaped(name)}" time="${(took / 1000).toFixed(3)}"`;
      if (isPassed({ name, took, differences, problems, ...test })) return `${about}/>`;
      const lines = [
        ...problems,
        ...differences.map(({ path, expected, was }) => `${path}: expected ${expected}, was ${was}`),
      ];
      return `${about}>\n      <failure message="${escaped(lines[0] ?? '')}">${escaped(lines.join('\n'))}</failure>\n    </testcase>`;
    });
    for (const { path, message, line } of issues)
      cases.push(
        `    <testcase classname="${escaped(file)}" name="${escaped(path || 'the file')}">\n      <error message="${escaped(`line ${line ?? 1}: ${message}`)}"/>\n    </testcase>`,
      );
    const failures = tests.filter((test) => !isPassed(test)).length;
    const errors = issues.length;
    const time = tests.reduce((sum, { took }) => sum + took, 0) / 1000;
    const counts = `tests="${tests.length + errors}" failures="${failures}" errors="${errors}" time="${time.toFixed(3)}"`;
    return `  <testsuite name="${escaped(file)}" ${counts}>\n${cases.join('\n')}\n  </testsuite>`;
  });
  const counts = `tests="${passed + failed}" failures="${failed}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${counts}>\n${suites.join('\n')}\n</testsuites>\n`;
}

// XML 1.0 has no way to write other control characters.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udfff]/gu;
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(UNWRITABLE, '\ufffd').replace(/[&<>"]/g, (char) => ENTITIES[char] as string);
}
