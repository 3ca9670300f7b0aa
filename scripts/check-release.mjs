/**
 * `npm publish` runs this first. It refuses a release whose package.json or CHANGELOG.md is not ready, and then runs `npm run verify`.
 * It checks the package in the current folder, and prints every problem at once.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const problems = [...addressProblems(), ...changelogProblems()];
if (problems.length > 0) {
  const lines = problems.map((problem) => `  - ${problem}`).join('\n');
  console.error(`This version is not ready for a release:\n${lines}\nNothing was published.`);
  process.exit(1);
}
process.exitCode = spawnSync('npm run verify', { stdio: 'inherit', shell: true }).status ?? 1;

/** A package without these fields has no page to report a problem on. They stay out of package.json until the addresses exist. */
function addressProblems() {
  const { repository, homepage, bugs } = readManifest();
  const fields = [
    ['repository', address(repository), '{ "type": "git", "url": "git+https://..." }'],
    ['homepage', address(homepage), '"https://..."'],
    ['bugs', address(bugs), '{ "url": "https://..." }'],
  ];
  return fields.flatMap(([name, url, form]) => {
    if (url === undefined) return [`package.json has no \`${name}\`: add ${form}`];
    return /^(git\+)?https:\/\/[^\s/]+\.[^\s/]+/.test(url)
      ? []
      : [`package.json: \`${name}\` is not an https address: ${url}`];
  });
}

function address(field) {
  return typeof field === 'string' ? field : field?.url;
}

function changelogProblems() {
  if (!existsSync('CHANGELOG.md')) return ['CHANGELOG.md is missing'];
  const { version } = readManifest();
  const sections = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m).slice(1);
  const find = (name) => sections.find((section) => titleOf(section).name === name);
  const released = find(version);
  const unreleased = find('Unreleased');
  const found = [];
  if (released === undefined) found.push(`CHANGELOG.md has no section \`## ${version} - YYYY-MM-DD\``);
  else {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(titleOf(released).date))
      found.push(`CHANGELOG.md: the section ${version} has no date: write \`## ${version} - YYYY-MM-DD\``);
    if (!hasEntries(released)) found.push(`CHANGELOG.md: the section ${version} is empty`);
  }
  if (unreleased !== undefined && hasEntries(unreleased))
    found.push(`CHANGELOG.md: the entries of \`Unreleased\` belong to a version: move them to \`## ${version}\``);
  return found;
}

/** `## [1.2.3] - 2030-01-31`: the brackets and the date may be missing. */
function titleOf(section) {
  const [, name = '', date = ''] = /^\[?([^\]\s]+)\]?(?:\s+-\s+(\S+))?/.exec(section) ?? [];
  return { name, date };
}

function hasEntries(section) {
  return /^[-*] /m.test(section);
}

function readManifest() {
  return JSON.parse(readFileSync('package.json', 'utf8'));
}
