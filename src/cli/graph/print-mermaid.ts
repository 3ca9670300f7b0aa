/** The graph of a flow as the text of a Mermaid flowchart. */

import { cutText, oneLine } from '../terminal/text.ts';
import type { FlowGraph, GraphEdge, GraphNode, GraphPart } from './flow-graph.ts';

export type Direction = 'TD' | 'LR';

/** The state of a step in one execution. */
export type StepState = 'completed' | 'failed' | 'retrying' | 'running' | 'skipped';

export interface StepMark {
  readonly state?: StepState;
  /** How often the step ran, such as `3 of 5`; shown after the name. */
  readonly times?: string;
}

/** Marks by the place of the step. */
export type StepMarks = ReadonlyMap<string, StepMark>;

/** The longest line of a label, in columns. */
const LINE = 60;
/** The largest number of edges that Mermaid draws, unless the page that shows the graph raises `maxEdges`. */
export const MERMAID_EDGES = 500;

const CLASSES: Readonly<Record<StepState, string>> = {
  completed: 'fill:#d9f2e3,stroke:#1a7f45,color:#0b3d20',
  failed: 'fill:#fbdcdc,stroke:#c62828,color:#5f1111',
  retrying: 'fill:#fdeccb,stroke:#b26a00,color:#4d2e00',
  running: 'fill:#d8e8fd,stroke:#1c62c4,color:#0c2f62',
  skipped: 'fill:#f1f1f1,stroke:#9a9a9a,color:#5c5c5c,stroke-dasharray:4 3',
};

const SHAPES: Readonly<Record<GraphNode['shape'], readonly [open: string, close: string]>> = {
  agent: ['[', ']'],
  router: ['{{', '}}'],
  decision: ['{', '}'],
  loop: ['[[', ']]'],
  wait: ['[/', '/]'],
  point: ['([', '])'],
};

/** @param marks - the states of one execution; without them, only the flow is drawn */
export function printMermaid(graph: FlowGraph, direction: Direction, marks?: StepMarks): string {
  const lines = [`flowchart ${direction}`, ...printParts(graph.parts, '  ', marks), ...graph.edges.map(printEdge)];
  if (marks) lines.push(...printClasses(graph.parts, marks));
  return `${lines.join('\n')}\n`;
}

function printParts(parts: readonly GraphPart[], indent: string, marks: StepMarks | undefined): string[] {
  return parts.flatMap((part) => {
    const times = marks?.get(part.place)?.times;
    const suffix = times === undefined ? '' : ` (${times})`;
    if (part.kind === 'node') {
      const [open, close] = SHAPES[part.shape];
      const [name = '', ...more] = part.lines;
      const label = [`${mermaidText(name, LINE)}${suffix}`, ...more.map((line) => mermaidText(line, LINE))];
      return [`${indent}${part.id}${open}"${label.join('<br/>')}"${close}`];
    }
    const title = `${indent}subgraph ${part.id}["${mermaidText(part.title, LINE)}${suffix}"]`;
    return [title, ...printParts(part.parts, `${indent}  `, marks), `${indent}end`];
  });
}

function printEdge({ from, to, label, dashed }: GraphEdge): string {
  const arrow = dashed ? '-.->' : '-->';
  return `  ${from} ${arrow}${label === undefined ? '' : `|"${mermaidText(label, LINE)}"|`} ${to}`;
}

function printClasses(parts: readonly GraphPart[], marks: StepMarks): string[] {
  const ids = new Map<StepState, string[]>();
  const collect = (all: readonly GraphPart[]) => {
    for (const part of all) {
      const state = marks.get(part.place)?.state;
      if (state !== undefined) ids.set(state, [...(ids.get(state) ?? []), part.id]);
      if (part.kind === 'block') collect(part.parts);
    }
  };
  collect(parts);
  const states = Object.keys(CLASSES) as StepState[];
  return states.flatMap((state) => {
    const marked = ids.get(state) ?? [];
    const use = marked.length === 0 ? [] : [`  class ${marked.join(',')} ${state}`];
    return [`  classDef ${state} ${CLASSES[state]}`, ...use];
  });
}

/**
 * Characters without a meaning in Mermaid, its Markdown or its HTML inside a quoted label. Every other character is written as
 * its code point, which Mermaid converts back when it draws the label.
 */
const PLAIN = /[\p{L}\p{N}\p{M} .,=()!?+'/…_-]/u;
const LETTER = /[\p{L}\p{N}]/u;

/**
 * @param columns - the longest text, in columns; a longer one is cut
 * @returns the text between the quotes of a label
 */
export function mermaidText(text: string, columns: number): string {
  // Mermaid accepts no empty label.
  const chars = [...(cutText(oneLine(text).trim(), columns) || '""')];
  return chars.map((char, i) => (isPlain(char, i, chars) ? char : toCharacterEntity(char))).join('');
}

function isPlain(char: string, i: number, chars: readonly string[]): boolean {
  if (!PLAIN.test(char)) return false;
  const before = chars[i - 1];
  const after = chars[i + 1];
  // `_word_` is shown in italics; `a_b` is not.
  if (char === '_' || char === '-') return isLetter(before) && isLetter(after);
  // A line that begins with `1.`, `+` or `=` is a list or a heading, and `www.` a link.
  if (i === 0) return LETTER.test(char);
  if (char === '.' || char === ')') return !/^(?:\d+|.*www)$/i.test(chars.slice(0, i).join(''));
  return true;
}

function isLetter(char: string | undefined): boolean {
  return char !== undefined && LETTER.test(char);
}

function toCharacterEntity(char: string): string {
  const code = char.codePointAt(0) as number;
  // Half of a surrogate pair is not a character.
  return `#${code >= 0xd800 && code <= 0xdfff ? 0xfffd : code};`;
}
