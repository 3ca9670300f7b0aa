/** Attacks by what a run does: results kept in memory, flows that never wait, patterns and expressions that cost seconds. */

import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from './requests.mjs';

const numbers = (count) => Array.from({ length: count }, (_, i) => i);
const run = (name) => `/execute/ensemble/${name}`;
const summarize = async (asked) => {
  const { status, first, ms } = await asked;
  const { message = first } = tryJson(first)?.error ?? {};
  return `${status} in ${ms} ms${status === 200 ? '' : `: ${message.slice(0, 100)}`}`;
};
const tryJson = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const TEXT = { 'scripts/text.mjs': "export default ({ config }) => 'x'.repeat(config.bytes);\n" };
const collecting = (script, more = '') =>
  `name: collect\nflow:\n  - foreach: \${input.items}\n    name: all\n${more}    steps: [{ agent: give, operation: code, config: { script: ${script}, bytes: 3900000 } }]\n`;

const HELD = { peakMb: 750, blockMs: 5_000, seconds: 60, storage: 'sqlite' };
const held =
  (count) =>
  ({ server, signal }) =>
    summarize(ask(server, run('collect'), { body: { input: { items: numbers(count) } }, signal }));

const RUNS = [
  {
    ...HELD,
    name: 'foreach-objects',
    about: 'a foreach collects 100 results of 1,000,000 empty objects',
    files: {
      'scripts/objects.mjs': 'export default () => Array.from({ length: 1_000_000 }, () => ({}));\n',
      'ensembles/collect.yaml': collecting('objects'),
    },
    attack: held(100),
  },
  {
    ...HELD,
    name: 'foreach-texts',
    about: 'a foreach collects 300 results of 3.9 MB',
    files: { ...TEXT, 'ensembles/collect.yaml': collecting('text') },
    attack: held(300),
  },
  {
    ...HELD,
    name: 'foreach-ends-early',
    about: 'a concurrent foreach ends at its 152nd result of 3.9 MB',
    files: {
      ...TEXT,
      'ensembles/collect.yaml': collecting('text', '    concurrency: 10\n    breakWhen: ${index >= 151}\n'),
    },
    attack: held(300),
  },
  {
    ...HELD,
    name: 'growing-state',
    about: 'state grows by 0.9 MB with each of 60 items',
    files: {
      'scripts/none.mjs': 'export default () => null;\n',
      'ensembles/collect.yaml':
        'name: collect\nstate: { initial: { log: [] } }\nflow:\n  - foreach: ${input.items}\n    collect: false\n    steps:\n      - agent: grow\n        operation: code\n        config: { script: none }\n        input: null\n        setState: { log: "${flatten([state.log, [input.a]])}" }\n',
    },
    attack: ({ server, signal }) =>
      summarize(
        ask(server, run('collect'), { body: { input: { items: numbers(60), a: 'x'.repeat(900_000) } }, signal }),
      ),
  },
  {
    name: 'deadly-run',
    about: 'a run that kills its process, until the server no longer resumes it',
    files: {
      'scripts/die.mjs': "export default () => process.kill(process.pid, 'SIGKILL');\n",
      'ensembles/die.yaml': 'name: die\nflow:\n  - { agent: a, operation: code, config: { script: die } }\n',
    },
    storage: 'sqlite',
    peakMb: 400,
    blockMs: 5_000,
    seconds: 100,
    kills: true,
    async attack({ server, signal, restart }) {
      await ask(server, run('die'), { body: { async: true }, signal });
      let deaths = 0;
      for (let now = server; deaths < 8; now = await restart()) {
        const died = await Promise.race([now.ended, sleep(8_000, undefined, { signal }).catch(() => undefined)]);
        if (died === undefined) break;
        deaths += 1;
      }
      const answer = `${deaths} deaths`;
      return deaths > 3 ? { answer, problem: 'the run killed more than 3 processes' } : answer;
    },
  },
];

const TURNS = { peakMb: 600, blockMs: 1_000, seconds: 90 };

const FLOWS = [
  {
    ...TURNS,
    name: 'nested-foreach',
    about: 'a foreach in a foreach over 4,000 items, timeout 3 s',
    files: {
      'ensembles/cross.yaml':
        'name: cross\ntimeout: 3000\nflow:\n  - foreach: ${input.items}\n    collect: false\n    steps:\n      - foreach: ${input.items}\n        collect: false\n        as: other\n        steps: [{ if: "${other < 0}", then: [{ sleep: 1 }] }]\n',
    },
    attack: ({ server, signal }) =>
      summarize(ask(server, run('cross'), { body: { input: { items: numbers(4_000) } }, signal })),
  },
  {
    ...TURNS,
    name: 'sync-foreach',
    about: 'a foreach of a synchronous script over 12,000 items on SQLite, timeout 2 s',
    files: {
      'scripts/one.mjs': 'export default () => 1;\n',
      'ensembles/all.yaml':
        'name: all\ntimeout: 2000\nflow:\n  - foreach: ${input.items}\n    collect: false\n    steps: [{ agent: one, operation: code, config: { script: one } }]\n',
    },
    storage: 'sqlite',
    attack: ({ server, signal }) =>
      summarize(ask(server, run('all'), { body: { input: { items: numbers(12_000) } }, signal })),
  },
  {
    ...TURNS,
    name: 'empty-while',
    about: '1,000,000 rounds of a while without work, timeout 1 s',
    files: {
      'ensembles/spin.yaml':
        'name: spin\ntimeout: 1000\nflow:\n  - while: ${true}\n    maxIterations: 1000000\n    steps: [{ if: "${false}", then: [{ sleep: 1 }] }]\n',
    },
    attack: ({ server, signal }) => summarize(ask(server, run('spin'), { body: {}, signal })),
  },
  {
    name: 'pattern',
    about: 'a pattern that can backtrack without end is refused at load',
    files: {
      'ensembles/match.yaml':
        'name: match\ninputs:\n  type: object\n  properties: { a: { type: string, pattern: "^(a+)+$" } }\nflow: []\n',
    },
    peakMb: 400,
    blockMs: 1_000,
    seconds: 20,
    mayBeRefused: /pattern/,
    attack: ({ server, signal }) =>
      summarize(ask(server, run('match'), { body: { input: { a: `${'a'.repeat(28)}!` } }, signal })),
  },
];

const EXPRESSIONS = { peakMb: 600, blockMs: 1_500, seconds: 40 };
/** Four concurrent callers. */
const fourTimes =
  (input = {}) =>
  async ({ server, signal }) => {
    const answers = Array.from({ length: 4 }, () => summarize(ask(server, run('sum'), { body: { input }, signal })));
    return `4 times ${(await Promise.all(answers)).at(-1)}`;
  };
const repeated = (part, times) => `\${[${Array(times).fill(part).join(', ')}]}`;
const outputs = (name, flow, expression) =>
  `name: ${name}\nflow:${flow}\noutputs: { out: ${JSON.stringify(expression)} }\n`;
const giving = (agent, script) => `\n  - { agent: ${agent}, operation: code, config: { script: ${script} } }`;
/** An object with integer-like keys that are far apart, which JavaScript engines keep in order. */
const indexed = (count) => Object.fromEntries(numbers(count).map((i) => [(i * 7_919) % 100_000_007, 1]));

const FORMULAS = [
  {
    ...EXPRESSIONS,
    name: 'dates',
    about: '470 date() of 3.9 MB of spaces and a date',
    files: {
      'scripts/spaces.mjs': "export default () => ' '.repeat(3_900_000) + '2026-01-01T00:00:00Z';\n",
      'ensembles/sum.yaml': outputs('sum', giving('a', 'spaces'), repeated('date(a.output)', 470)),
    },
    attack: fourTimes(),
  },
  {
    ...EXPRESSIONS,
    name: 'prefixes',
    about: '8 outputs of 240 startsWith() of equal texts of 1.9 MB',
    files: {
      'scripts/alike.mjs': "export default () => 'x'.repeat(1_900_000);\n",
      'ensembles/sum.yaml': `name: sum\nflow:${giving('a', 'alike')}${giving('b', 'alike')}\noutputs: { ${numbers(8)
        .map((i) => `o${i}: "${repeated('startsWith(a.output, b.output)', 240)}"`)
        .join(', ')} }\n`,
    },
    attack: fourTimes(),
  },
  {
    ...EXPRESSIONS,
    name: 'merges',
    about: 'merge() of 90 objects with 50,000 keys',
    files: {
      'ensembles/sum.yaml': outputs('sum', ' []', `\${length(merge(${Array(90).fill('input.a').join(', ')}))}`),
    },
    attack: fourTimes({ a: indexed(50_000) }),
  },
  {
    ...EXPRESSIONS,
    name: 'comparisons',
    about: '60 comparisons of two objects with 35,000 keys',
    files: { 'ensembles/sum.yaml': outputs('sum', ' []', repeated('input.a == input.b', 60)) },
    attack: fourTimes({ a: indexed(35_000), b: indexed(35_000) }),
  },
  {
    ...EXPRESSIONS,
    name: 'keys',
    about: '80 keys() and values() of an object with 50,000 keys',
    files: {
      'ensembles/sum.yaml': outputs('sum', ' []', repeated('length(keys(input.a)), length(values(input.a))', 40)),
    },
    attack: fourTimes({ a: indexed(50_000) }),
  },
  {
    ...EXPRESSIONS,
    name: 'parse-json',
    about: '4 parseJson() of 3.6 MB of empty objects',
    files: {
      'scripts/text.mjs': "export default () => '[' + '{},'.repeat(1_200_000) + '{}]';\n",
      'ensembles/sum.yaml': `name: sum\nflow:${giving('a', 'text')}\noutputs: { ${numbers(4)
        .map((i) => `o${i}: "\${length(parseJson(a.output))}"`)
        .join(', ')} }\n`,
    },
    attack: fourTimes(),
  },
];

const POSTGRES = {
  name: 'postgres-batch',
  about: '60 executions with a result of 3.9 MB and 50 small ones at once, on Postgres',
  files: {
    ...TEXT,
    'scripts/one.mjs': 'export default () => 1;\n',
    'ensembles/large.yaml':
      'name: large\nflow:\n  - { agent: a, operation: code, config: { script: text, bytes: 3900000 } }\n',
    'ensembles/small.yaml': 'name: small\nflow:\n  - { agent: a, operation: code, config: { script: one } }\n',
  },
  storage: 'postgres',
  peakMb: 1_000,
  blockMs: 5_000,
  seconds: 90,
  async attack({ server, signal }) {
    const many = (name, count) => numbers(count).map(() => ask(server, run(name), { body: {}, signal }));
    const large = many('large', 60);
    const small = many('small', 50);
    const good = async (asked) => (await Promise.all(asked)).filter(({ status }) => status === 200).length;
    const [largeGood, smallGood] = [await good(large), await good(small)];
    const slowest = Math.max(...(await Promise.all(small)).map(({ ms }) => ms));
    const answer = `${largeGood} of 60 large, ${smallGood} of 50 small, the slowest small one in ${slowest} ms`;
    return largeGood + smallGood < 110 ? { answer, problem: 'executions were refused' } : answer;
  },
};

export const ATTACKING_RUNS = [...RUNS, ...FLOWS, POSTGRES, ...FORMULAS];
