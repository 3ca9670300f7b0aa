/** The graph of a flow: its parts, its text, and the marks from the results of an execution. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { executionMarks } from '../../src/cli/graph/execution-marks.ts';
import { flowGraph, type GraphPart } from '../../src/cli/graph/flow-graph.ts';
import { mermaidText, printMermaid } from '../../src/cli/graph/print-mermaid.ts';
import { readDefinition } from '../../src/cli/start.ts';
import type { EnsembleDefinition } from '../../src/engine/ensemble/ensemble.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { ROOT } from './cli-process.ts';

const step = (agent: string) => `{ agent: ${agent}, operation: code, config: { script: x } }`;

function draw(flow: string): string[] {
  const text = printMermaid(flowGraph(readDefinition(`name: e\n${flow}`)), 'TD');
  return text
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
}

/** Checks that each node and frame is declared once, that the ends of each edge exist and do not contain each other, and that labels are safe. */
function check(definition: EnsembleDefinition): void {
  const graph = flowGraph(definition);
  const frames = new Map<string, readonly string[]>();
  const declare = (parts: readonly GraphPart[], inside: readonly string[]) => {
    for (const part of parts) {
      expect(frames.has(part.id), part.id).toBe(false);
      frames.set(part.id, inside);
      if (part.kind === 'block') declare(part.parts, [...inside, part.id]);
    }
  };
  declare(graph.parts, []);
  for (const { from, to } of graph.edges) {
    expect(frames.get(from), from).not.toContain(to);
    expect(frames.get(to), to).not.toContain(from);
  }
  const text = printMermaid(graph, 'TD');
  const safe = /^(?:[\p{L}\p{N}\p{M} .,=()!?+'/…_-]|<br\/>|#\d+;)+$/u;
  for (const [, label] of text.matchAll(/"([^"\n]*)"/g)) expect(label).toMatch(safe);
  // Without its labels, a line is a shape, an edge or a frame.
  const rest = text
    .replace(/"[^"\n]*"/g, '""')
    .trimEnd()
    .split('\n')
    .slice(1);
  for (const line of rest) {
    expect(line).toMatch(
      /^ +(?:n\d+(?:\[""\]|\{\{""\}\}|\{""\}|\[\[""\]\]|\[\/""\/\]|\(\[""\]\))|subgraph b\d+\[""\]|end|[nb]\d+ -\.?-> ?(?:\|""\| )?n\d+|[nb]\d+ (?:-->|-\.->)(?:\|""\|)? n\d+)$/,
    );
  }
}

describe('the graph of a flow', () => {
  it('draws choices with a label on each edge', () => {
    expect(
      draw(`flow:
  - if: \${input.a > 1}
    then: [${step('a')}]
  - { switch: "\${input.kind}", cases: { refund: [${step('b')}], " ": [] }, default: [] }
`),
    ).toEqual([
      'n1(["start"])',
      'n2{"if input.a #62; 1"}',
      'n3["a<br/>code"]',
      'n4{"switch input.kind"}',
      'n5["b<br/>code"]',
      'n6(["end"])',
      'n1 --> n2',
      'n2 -->|"yes"| n3',
      'n3 --> n4',
      'n2 -->|"no"| n4',
      'n4 -->|"refund"| n5',
      'n5 --> n6',
      'n4 -->|"#34; #34;"| n6',
      'n4 -->|"otherwise"| n6',
    ]);
  });

  it('draws loops as frames with an edge back', () => {
    const drawn = draw(`flow:
  - { while: "\${p.output}", steps: [${step('p')}], maxIterations: 9 }
  - { foreach: [1], as: x, concurrency: 4, breakWhen: x > 3, steps: [{ sleep: 5s }, ${step('q')}] }
`);
    expect(drawn).toEqual([
      'n1(["start"])',
      'subgraph b2["while p.output"]',
      'n3{"p.output<br/>at most 9 rounds"}',
      'n4["p<br/>code"]',
      'end',
      'subgraph b5["foreach #91;1#93; as x, 4 at once"]',
      'n6[["items<br/>until x #62; 3"]]',
      'n7[/"sleep 5s"/]',
      'n8["q<br/>code"]',
      'end',
      'n9(["end"])',
      'n1 --> n3',
      'n3 -->|"yes"| n4',
      'n4 -->|"again"| n3',
      'n3 -->|"no"| n6',
      'n6 -->|"each item"| n7',
      'n7 --> n8',
      'n8 -->|"next item"| n6',
      'n6 -->|"done"| n9',
    ]);
  });

  it('draws parallel branches, and dashed edges to the steps after a failure', () => {
    const drawn = draw(`flow:
  - { parallel: [${step('a')}, ${step('b')}], waitFor: any, condition: input.go }
  - { try: [${step('c')}], catch: [${step('d')}], finally: [${step('f')}] }
`);
    expect(drawn).toEqual([
      'n1(["start"])',
      'subgraph b2["parallel, until one succeeds"]',
      'n3[["branches<br/>only if input.go"]]',
      'n4["a<br/>code"]',
      'n5["b<br/>code"]',
      'n6(["any"])',
      'end',
      ...['subgraph b7["try"]', 'subgraph b8["try"]', 'n9["c<br/>code"]', 'end'],
      ...['subgraph b10["catch"]', 'n11["d<br/>code"]', 'end'],
      ...['subgraph b12["finally"]', 'n13["f<br/>code"]', 'end', 'end'],
      'n14(["end"])',
      'n1 --> n3',
      'n3 --> n4',
      'n3 --> n5',
      'n4 --> n6',
      'n5 --> n6',
      'n6 --> n9',
      'b8 -.->|"fails"| n11',
      'n9 --> n13',
      'n11 --> n13',
      'b10 -.->|"in any case"| n13',
      'n13 --> n14',
    ]);
  });

  it('draws no empty frame', () => {
    const drawn = draw(`flow: [{ try: [${step('c')}], catch: [] }]\n`);
    expect(drawn.filter((line) => line.startsWith('subgraph'))).toEqual(['subgraph b2["try"]', 'subgraph b3["try"]']);
  });

  it('draws a router with its members, and both names of a renamed agent', () => {
    const drawn = draw(`flow:
  - agent: choose
    routes: [{ condition: input.vip, member: fast }, { condition: input.p, prompt: "be brief" }]
  - { agent: fast, name: again }
agents: [{ name: fast, operation: api, config: { url: "https://x.example" } }]
`);
    expect(drawn).toEqual([
      'n1(["start"])',
      'n2{{"choose<br/>route"}}',
      'n3["fast<br/>api"]',
      'n4["again<br/>agent fast<br/>api"]',
      'n5(["end"])',
      'n1 --> n2',
      'n2 -->|"input.vip"| n3',
      'n3 --> n4',
      'n2 -->|"input.p, prompt be brief"| n4',
      'n2 -->|"otherwise"| n4',
      'n4 --> n5',
    ]);
  });

  it('draws a wait with its signal and its time', () => {
    const flow = [{ wait: 'approved', timeout: '24h', name: 'approval' } as const, { wait: 'paid' }];
    const drawn = printMermaid(flowGraph({ name: 'e', flow }), 'LR');
    expect(drawn).toContain('n2[/"wait for approved, at most 24h<br/>approval"/]');
    expect(drawn).toContain('n3[/"wait for paid"/]');
  });

  it('draws an unknown step as one node', () => {
    const flow = [{ teleport: 'home', name: 'made' }] as unknown as EnsembleDefinition['flow'];
    expect(printMermaid(flowGraph({ name: 'e', flow }), 'LR')).toContain('n2[/"teleport home<br/>made"/]');
  });

  it('draws a step that starts another ensemble as one node with its name', () => {
    const flow = [
      { ensemble: 'child', name: 'made' },
      { ensemble: 'child', detached: true },
    ];
    const drawn = printMermaid(flowGraph({ name: 'e', flow }), 'LR');
    expect(drawn).toContain('n2[/"ensemble child<br/>made"/]');
    expect(drawn).toContain('n3[/"ensemble child, detached"/]');
  });

  it.each([
    ['say "hi"; end', 'say #34;hi#34;#59; end'],
    ['a[0] | b{c} #1', 'a#91;0#93; #124; b#123;c#125; #35;1'],
    ['one\n  two', 'one two'],
    ['%%{init: {}}%% <b>', '#37;#37;#123;init#58; #123;#125;#125;#37;#37; #60;b#62;'],
    ['1. a', '1#46; a'],
    ['- a', '#45; a'],
    ['_a_ b_c __d', '#95;a#95; b_c #95;#95;d'],
    ['`x` *y* \\', '#96;x#96; #42;y#42; #92;'],
    ['a@b.c www.d.e', 'a#64;b.c www#46;d.e'],
    ['', '#34;#34;'],
    ['\u0000\ud800', '#65533;#65533;'],
    ['zoë 漢字 😀', 'zoë 漢字 #128512;'],
    ['x'.repeat(80), `${'x'.repeat(59)}…`],
  ])('writes %j so that it is shown unchanged and has no meaning for Mermaid', (text, label) => {
    expect(mermaidText(text, 60)).toBe(label);
  });

  it('draws every valid definition of the vectors, also with conditions that could break a label', () => {
    const folder = join(ROOT, 'test/vectors/definitions/valid');
    const definitions = readdirSync(folder)
      .flatMap((file) => parse(readFileSync(join(folder, file), 'utf8')) as { readonly source?: string }[])
      .flatMap(({ source }) => (source === undefined ? [] : [readDefinition(source)]));
    expect(definitions.length).toBeGreaterThan(50);
    const hostile = '"] --> x\n%%{init: {}}%% | {"}} #quot; `<br/>` end\u2028subgraph z';
    for (const definition of definitions) {
      check(definition);
      const spoilt = JSON.parse(JSON.stringify(definition), (key, value) =>
        typeof value === 'string' && key !== 'agent' && key !== 'operation' && key !== 'member' ? hostile : value,
      );
      check(spoilt as EnsembleDefinition);
    }
  });
});

describe('the marks of an execution', () => {
  const scripts = {
    x: () => 1,
    bad: () => {
      throw new Error('no');
    },
    hang: () => new Promise<never>(() => {}),
  };
  const code = (agent: string, script = 'x') => ({ agent, operation: 'code', config: { script } });

  /** The marks of an execution in which everything has happened that can happen now, such as `completed 2 rounds`. */
  async function marksOf(flow: readonly unknown[], agents: readonly unknown[] = []) {
    const source = JSON.stringify({ name: 'e', flow, agents });
    const definition = readDefinition(source);
    const child = { name: 'child', flow: [{ wait: 'go', condition: 'input.stay' }, code('c', 'bad')] };
    const orchestrator = createTestOrchestrator({ ensembles: [source, child], scripts });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(1);
    const { steps } = await orchestrator.executions.steps(id, { limit: 250 });
    const marks = executionMarks(flowGraph(definition), await orchestrator.executions.get(id), steps);
    return Object.fromEntries(
      [...marks].map(([place, { state, times }]) => [place, times === undefined ? state : `${state} ${times}`]),
    );
  }

  it('show each step that has ended as it ended: empty loops, skipped waits and sleeps too', async () => {
    const shown = await marksOf([
      { foreach: [], steps: [code('a')] },
      { while: 'false', steps: [code('b')] },
      { while: 'c.output == null', steps: [code('c')], maxIterations: 3 },
      { foreach: [1, 2, 3], steps: [{ if: 'item > 1', then: [code('d')] }] },
      { wait: 'go', condition: 'false' },
      { sleep: '1h', condition: 'false' },
      { if: 'true', then: [code('f')], else: [code('g')] },
      { try: [code('h', 'bad')], catch: [code('i')], finally: [code('j')] },
      { ...code('k', 'bad'), continueOnError: true },
    ]);
    expect(shown).toEqual({
      ...{ start: 'completed', end: 'completed' },
      ...{ 'flow[0]': 'completed 0 items', 'flow[0].foreach.steps[0]': 'skipped' },
      ...{ 'flow[1]': 'completed 0 rounds', 'flow[1].while.steps[0]': 'skipped' },
      ...{ 'flow[2]': 'completed 1 round', 'flow[2].while.steps[0]': 'completed' },
      ...{ 'flow[3]': 'completed 3 items', 'flow[3].foreach.steps[0]': 'completed 3 times' },
      'flow[3].foreach.steps[0].then[0]': 'completed 2 times',
      ...{ 'flow[4]': 'skipped', 'flow[5]': 'skipped' },
      ...{ 'flow[6]': 'completed', 'flow[6].then[0]': 'completed', 'flow[6].else[0]': 'skipped' },
      ...{ 'flow[7]': 'completed', 'flow[7].try': 'completed', 'flow[7].try[0]': 'failed' },
      ...{ 'flow[7].catch': 'completed', 'flow[7].catch[0]': 'completed' },
      ...{ 'flow[7].finally': 'completed', 'flow[7].finally[0]': 'completed', 'flow[8]': 'failed' },
    });
  });

  it('show the steps after a failure as skipped', async () => {
    expect(await marksOf([code('a'), code('b', 'bad'), { sleep: '1h' }, { parallel: [code('c')] }])).toEqual({
      ...{ start: 'completed', end: 'failed', 'flow[0]': 'completed', 'flow[1]': 'failed', 'flow[2]': 'skipped' },
      ...{ 'flow[3]': 'skipped', 'flow[3].parallel[0]': 'skipped' },
    });
  });

  it('show what an execution does that has not ended; a step that runs for the first time has no mark', async () => {
    const retry = { maxAttempts: 3, delay: '1h' };
    const shown = await marksOf([
      code('a'),
      {
        parallel: [
          { wait: 'go', timeout: '1h' },
          { ...code('b', 'bad'), retry },
          code('c'),
          code('d', 'hang'),
          { ensemble: 'child', name: 'child1', input: { stay: true } },
          { ensemble: 'child', name: 'child2', input: { stay: true }, detached: true },
          { ensemble: 'child', name: 'child3', input: { stay: false }, continueOnError: true },
          { foreach: [1, 2], concurrency: 2, steps: [{ wait: 'next' }] },
        ],
      },
      code('z'),
    ]);
    expect(shown).toEqual({
      ...{ start: 'completed', 'flow[0]': 'completed', 'flow[1]': 'running', 'flow[1].parallel[0]': 'running' },
      ...{ 'flow[1].parallel[1]': 'retrying', 'flow[1].parallel[2]': 'completed', 'flow[1].parallel[4]': 'running' },
      ...{ 'flow[1].parallel[5]': 'completed', 'flow[1].parallel[6]': 'failed', 'flow[1].parallel[7]': 'running' },
      'flow[1].parallel[7].foreach.steps[0]': 'running',
    });
  });

  it('show to which member a router led', async () => {
    const agents = [
      { name: 'one', operation: 'code', config: { script: 'x' } },
      { name: 'two', operation: 'code', config: { script: 'x' } },
    ];
    const routes = [
      { condition: 'false', member: 'one' },
      { condition: 'true', member: 'two' },
    ];
    expect(await marksOf([{ agent: 'pick', routes }], agents)).toEqual({
      ...{ start: 'completed', end: 'completed' },
      ...{ 'flow[0]': 'completed', 'flow[0].one': 'skipped', 'flow[0].two': 'completed' },
    });
  });
});
