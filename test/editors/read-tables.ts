/** Reads what the documentation's tables say about each key of a form. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../architecture/source-graph.ts';

interface Section {
  /** Below `docs/`. */
  readonly page: string;
  /** Undefined for the first table of the page. */
  readonly heading?: string;
  /** Of the keys, such as `retry.` for the map below `retry`. */
  readonly prefix?: string;
}

const flow = (form: string): readonly Section[] => [{ page: `flow/${form}.md` }];

/** The tables of each form. */
const SECTIONS: Readonly<Record<string, readonly Section[]>> = {
  verbs: [{ page: 'flow.md' }],
  ensemble: [{ page: 'definitions.md', heading: 'Top level' }],
  inputField: [{ page: 'definitions.md', heading: 'Inputs' }],
  agent: [
    { page: 'definitions.md', heading: 'Agents' },
    { page: 'definitions.md', heading: 'Retry', prefix: 'retry.' },
    { page: 'definitions.md', heading: 'Routers', prefix: 'routes.' },
  ],
  webhookTrigger: [{ page: 'definitions.md', heading: 'Triggers' }],
  scheduleTrigger: [{ page: 'schedules.md' }],
  notification: [{ page: 'definitions.md', heading: 'Notifications' }],
  agentStep: flow('agent'),
  ifStep: flow('if'),
  foreachStep: flow('foreach'),
  parallelStep: flow('parallel'),
  switchStep: flow('switch'),
  whileStep: flow('while'),
  tryStep: flow('try'),
  sleepStep: flow('sleep'),
  untilStep: flow('sleep'),
  waitStep: flow('wait'),
  ensembleStep: flow('ensemble'),
  'config-api': [{ page: 'operations/api.md', heading: 'Config' }],
  'config-code': [{ page: 'operations/code.md', heading: 'Config' }],
  'config-think': [{ page: 'operations/think.md', heading: 'Config' }],
  'config-storage': [
    { page: 'operations/storage.md', heading: 'Config' },
    { page: 'operations/storage.md', heading: 'Exports', prefix: 'exportOptions.' },
  ],
  'config-email': [{ page: 'operations/email.md', heading: 'Config' }],
  'config-sms': [{ page: 'operations/sms.md', heading: 'Config' }],
  'config-pdf': [{ page: 'operations/pdf.md', heading: 'Config' }],
  'config-tools': [{ page: 'operations/tools.md', heading: 'Config' }],
};

/** The description of each key, by form. */
export function readTables(): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return Object.fromEntries(
    Object.entries(SECTIONS).map(([form, sections]) => [form, Object.assign({}, ...sections.map(readTable))]),
  );
}

function readTable({ page, heading, prefix = '' }: Section): Record<string, string> {
  const text = readFileSync(join(ROOT, 'docs', page), 'utf8');
  const start = heading === undefined ? 0 : text.search(new RegExp(`^#+ ${heading}$`, 'm'));
  const lines = text.slice(start).split('\n');
  const first = lines.findIndex((line) => /^\| (?:key|verb)\b/.test(line));
  const header = cellsOf(lines[first] ?? '');
  const descriptions: Record<string, string> = {};
  for (let row = first + 2; lines[row]?.startsWith('|'); row++) {
    const cells = cellsOf(lines[row] as string);
    const [keys = ''] = cells;
    const column = (...names: string[]) => cells[header.findIndex((name) => names.includes(name))] ?? '';
    const what = column('what it does', 'meaning', 'what the step does');
    const value = column('value', 'type');
    // The step says the same as the agent.
    if (value.startsWith('as in ')) continue;
    const description = describe(
      what,
      header[1] === 'type' && header[2] === 'value' ? (cells[2] as string) : value,
      column('default'),
    );
    for (const [, key] of keys.matchAll(/`([^`]+)`/g)) descriptions[prefix + key] = description;
  }
  return descriptions;
}

function cellsOf(line: string): readonly string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replace(/\[([^\]]+)\]\([^)]+\)/g, '$1'));
}

function describe(what: string, value: string, standard: string): string {
  const parts = what === '' ? [sentence(value)] : [sentence(what), ...(value === '' ? [] : [`Value: ${value}.`])];
  if (standard.startsWith('required')) parts.push(sentence(standard));
  else if (standard !== '' && standard !== 'none') parts.push(`Default: ${standard}.`);
  return parts.join(' ');
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return first.endsWith('.') ? first : `${first}.`;
}
