/** Converts a composed YAML document to JSON data: it expands aliases up to a limit, and refuses what JSON does not have. */

import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type Scalar, type YAMLMap } from 'yaml';
import { type Json, MAX_DEPTH } from '../../base/json/json.ts';
import { quoted } from '../../base/wording.ts';
import { isReference } from '../../component/component.ts';

/** What is wrong with a node, with its offsets in the text. */
export interface NodeProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

/** The data of a document, with what a source map needs to find a path in the text. */
export interface ConvertedDocument {
  readonly value: Json;
  readonly problems: readonly NodeProblem[];
  /** Whether the parts without problems can be checked: each problem is about one value. */
  readonly usable: boolean;
  readonly aliases: ReadonlyMap<Alias, Node>;
  /** The text of a key. */
  readonly keyText: (key: Node) => string;
}

interface Anchored {
  readonly node: Node;
  value: Json;
  /** The rough size of the JSON, in UTF-16 units. */
  weight: number;
  /** The depth of the collections inside. */
  height: number;
  /** Still being read: an alias to it would contain itself. */
  open: boolean;
}

interface State {
  readonly restore: (text: string) => string;
  readonly keyText: (key: Node) => string;
  readonly maxAliasWeight: number;
  readonly path: (string | number)[];
  readonly problems: NodeProblem[];
  readonly anchors: Map<string, Anchored>;
  readonly aliases: Map<Alias, Node>;
  depth: number;
  deepest: number;
  weight: number;
  aliasWeight: number;
  refused: boolean;
  usable: boolean;
}

// Nobody reads more problems, and each one needs memory for its path.
const MAX_PROBLEMS = 1000;
const LONE_SURROGATE = /[\ud800-\udfff]/u;
const INTEGER = /^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$/;

/**
 * Converts the contents of a document and collects the problems. A value with a problem is null; of two equal keys, the second counts.
 *
 * @param root - the contents of the document
 * @param maxAliasWeight - the characters of JSON that all expanded aliases together may add
 * @param restore - returns the text of a node as its author wrote it
 */
export function nodeToJson(
  root: Node | null,
  maxAliasWeight: number,
  restore: (text: string) => string,
): ConvertedDocument {
  const keyText = (key: Node) => (isScalar(key) ? restore(String(key.value)) : '');
  const state: State = {
    restore,
    keyText,
    maxAliasWeight,
    path: [],
    problems: [],
    anchors: new Map(),
    aliases: new Map(),
    depth: 0,
    deepest: 0,
    weight: 0,
    aliasWeight: 0,
    refused: false,
    usable: true,
  };
  const value = root ? convert(root, state) : null;
  return { value, problems: state.problems, usable: state.usable, aliases: state.aliases, keyText };
}

function convert(node: Node, state: State): Json {
  if (isAlias(node)) return convertAlias(node, state);
  const name = (node as { anchor?: string }).anchor;
  if (!name) return convertPlain(node, state);
  const before = { weight: state.weight, deepest: state.deepest };
  const anchored: Anchored = { node, value: null, weight: 0, height: 0, open: true };
  state.anchors.set(name, anchored);
  state.deepest = state.depth;
  anchored.value = convertPlain(node, state);
  anchored.weight = state.weight - before.weight;
  anchored.height = state.deepest - state.depth;
  anchored.open = false;
  state.deepest = Math.max(state.deepest, before.deepest);
  return anchored.value;
}

function convertPlain(node: Node, state: State): Json {
  if (isScalar(node)) return convertScalar(node, state);
  if (++state.depth > MAX_DEPTH) refuseDocument(state, node, `the document is nested deeper than ${MAX_DEPTH} levels`);
  state.deepest = Math.max(state.deepest, state.depth);
  state.weight += 2;
  let value: Json = null;
  if (isMap(node)) value = convertMap(node as YAMLMap<Node, Node | null>, state);
  else if (isSeq(node)) {
    value = (node.items as Node[]).map((item, index) => {
      state.path.push(index);
      const converted = convert(item, state);
      state.path.pop();
      return converted;
    });
  }
  state.depth--;
  return value;
}

function convertMap(map: YAMLMap<Node, Node | null>, state: State): Json {
  const out: Record<string, Json> = {};
  const seen = new Map<string, Node>();
  for (const pair of map.items as Pair<Node, Node | null>[]) {
    const key = state.keyText(pair.key);
    const first = seen.get(key);
    state.path.push(key);
    const fault = keyFault(pair.key, key, pair.value);
    if (fault) refuseDocument(state, pair.key, fault);
    else if (first)
      reportProblem(state, pair.key, `the key ${quoted(key)} is given twice in this map; keep one of the two`);
    else seen.set(key, pair.key);
    if (isScalar(pair.key) && pair.key.anchor) convert(pair.key, state);
    state.weight += key.length + 4;
    const value = pair.value ? convert(pair.value, state) : null;
    if (!fault) out[key] = value;
    state.path.pop();
  }
  return out;
}

function keyFault(node: Node, key: string, value: unknown): string | undefined {
  // The parser has already reported a list, a map or an alias as a key.
  if (!isScalar(node)) return undefined;
  if (key === '__proto__') return 'the key `__proto__` is never allowed; use another name';
  if (node.type !== 'PLAIN')
    return LONE_SURROGATE.test(key)
      ? 'the key contains half of a surrogate pair, which is not a character; write the whole pair'
      : undefined;
  if (key === '') return 'expected a key before the `:`; write "" for an empty key';
  // In a config, it names a stored config.
  if (key === '<<' && !(isScalar(value) && isReference(value.value)))
    return 'YAML 1.2 has no merge keys (`<<`); write the keys out, or put "<<" in quotes for a key of that name';
  return undefined;
}

function convertAlias(alias: Alias, state: State): Json {
  const target = state.anchors.get(alias.source);
  if (!target) {
    return reportProblem(state, alias, `there is no anchor ${quoted(`&${alias.source}`)} before this alias`);
  }
  if (target.open)
    return refuseDocument(
      state,
      alias,
      `the anchor ${quoted(`&${alias.source}`)} contains itself through this alias; JSON has no cycles`,
    );
  if (state.depth + target.height > MAX_DEPTH) {
    return refuseDocument(
      state,
      alias,
      `the document is nested deeper than ${MAX_DEPTH} levels once this alias is expanded`,
    );
  }
  state.aliases.set(alias, target.node);
  state.weight += target.weight;
  state.aliasWeight += target.weight;
  state.deepest = Math.max(state.deepest, state.depth + target.height);
  if (state.aliasWeight > state.maxAliasWeight && !state.refused) {
    state.refused = true;
    refuseDocument(
      state,
      alias,
      `the aliases of the document expand to more than ${state.maxAliasWeight} characters; use fewer aliases`,
    );
  }
  return target.value;
}

function convertScalar(scalar: Scalar, state: State): Json {
  const value = scalar.value;
  if (typeof value === 'string') {
    state.weight += value.length + 3;
    if (scalar.type === 'QUOTE_DOUBLE' && LONE_SURROGATE.test(value)) {
      reportProblem(
        state,
        scalar,
        'the text contains half of a surrogate pair, which is not a character; write the whole pair',
      );
    }
    return state.restore(value);
  }
  state.weight += 8;
  if (typeof value === 'number') return convertNumber(value, scalar, state);
  return value === null || typeof value === 'boolean' ? value : reportProblem(state, scalar, 'expected a JSON value');
}

function convertNumber(value: number, scalar: Scalar, state: State): Json {
  const written = scalar.source ?? String(value);
  if (!Number.isFinite(value)) {
    return reportProblem(state, scalar, `JSON can't hold ${quoted(written)}; use null, or put it in quotes for text`);
  }
  if (INTEGER.test(written) && !Number.isSafeInteger(value)) {
    return reportProblem(
      state,
      scalar,
      `the integer ${quoted(written)} is beyond 2^53 and would be rounded; put it in quotes for text`,
    );
  }
  return Object.is(value, -0) ? 0 : value;
}

function reportProblem(state: State, node: Node, message: string): null {
  const [start, end] = node.range ?? [0, 1];
  const { path, problems } = state;
  if (problems.length < MAX_PROBLEMS) problems.push({ path: [...path], message, start, end });
  return null;
}

/** Reports a problem of the whole document: the other values may be wrong too. */
function refuseDocument(state: State, node: Node, message: string): null {
  state.usable = false;
  return reportProblem(state, node, message);
}
