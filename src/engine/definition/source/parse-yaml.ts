/** Runs the YAML parser with limits: it stops at the first level that is too deep, and composes one document. */

import { Composer, type CST, type Document, type ErrorCode, Lexer, Parser } from 'yaml';
import { MAX_DEPTH } from '../../base/json/json.ts';
import { canMask, createCutSearch, type ExpressionSpan, maskExpressions, unmask } from './mask-expressions.ts';

/** An error or a warning of the parser, with its offsets in the text. */
export interface YamlMistake {
  readonly code: ErrorCode;
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

/** A document that is too large to be composed, and the offset at which it is. */
interface RefusedYaml {
  readonly kind: 'refused';
  readonly message: string;
  readonly offset: number;
}

/** The result of parsing: the composed document with its errors, or why it is refused. */
export type ParsedYaml =
  | RefusedYaml
  | {
      readonly kind: 'document';
      readonly document: Document.Parsed;
      readonly errors: readonly YamlMistake[];
      /** Where a second document starts, if there is one. */
      readonly secondAt: number | undefined;
      /** Returns the text of a node or of an error as its author wrote it. */
      readonly restore: (text: string) => string;
    };

/** The most lexical tokens: keys, values, signs, line breaks. 1,000 steps of an ordinary definition have about 50,000. */
const MAX_PARTS = 500_000;
const TOO_MANY = `the document has more than ${MAX_PARTS} keys, values and signs up to here; split it`;
const TOO_DEEP = `the document is nested deeper than ${MAX_DEPTH} levels`;
// Most later errors follow from the first one, and a text of `[,,,,,` has a million errors.
const MAX_MISTAKES = 1000;
// An odd quote inside an expression can hide later expressions from the lexer. Each pass finds more of them.
const MAX_MASK_PASSES = 8;
const SCALAR_FOLLOWS = '\u001f';
// Tokens that the lexer adds itself have no width in the source.
const WIDTHLESS: ReadonlySet<string> = new Set([SCALAR_FOLLOWS, '\u0002', '\u0018']);

/**
 * Parses one YAML text. The parser keeps its open collections on its own stack and receives one lexical token at a
 * time, so that the depth is known before anything recurses. Its own recursion can abort a process with a few KB of text.
 *
 * @param text - the text, without a byte-order mark
 */
export function parseYaml(text: string): ParsedYaml {
  let source = text;
  for (let pass = 0; ; pass++) {
    const fed = feed(source, pass < MAX_MASK_PASSES && canMask(text));
    if (fed.kind === 'refused') return fed;
    if (fed.kind === 'tokens') return compose(fed.tokens, text.length, pass === 0 ? (as) => as : unmask);
    source = maskExpressions(source, fed.spans);
  }
}

type Fed =
  | RefusedYaml
  | { readonly kind: 'tokens'; readonly tokens: CST.Token[] }
  | { readonly kind: 'cut'; readonly spans: ExpressionSpan[] };

function feed(source: string, masking: boolean): Fed {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const spans: ExpressionSpan[] = [];
  const findCut = createCutSearch(source);
  let offset = 0;
  let maskedTo = 0;
  let atScalar = false;
  let parts = 0;
  for (const lexeme of new Lexer().lex(source)) {
    parts += 1;
    if (parts > MAX_PARTS) return { kind: 'refused', message: TOO_MANY, offset };
    if (atScalar) {
      atScalar = false;
      const end = offset + lexeme.length;
      if (masking && offset >= maskedTo) {
        const span = findCut(offset, end);
        if (span) {
          spans.push(span);
          maskedTo = span.end;
        }
      }
      offset = end;
    } else if (WIDTHLESS.has(lexeme)) {
      atScalar = lexeme === SCALAR_FOLLOWS;
    } else {
      offset += lexeme.length;
    }
    // A text with a cut expression is read again. In this pass only the search for more expressions continues.
    if (spans.length > 0) continue;
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > MAX_DEPTH && openCollections(parser.stack) > MAX_DEPTH) {
      return { kind: 'refused', message: TOO_DEEP, offset: parser.offset };
    }
  }
  if (spans.length > 0) return { kind: 'cut', spans };
  for (const token of parser.end()) tokens.push(token);
  return { kind: 'tokens', tokens };
}

function openCollections(stack: readonly CST.Token[]): number {
  let count = 0;
  for (const { type } of stack) {
    if (type === 'block-map' || type === 'block-seq' || type === 'flow-collection') count++;
  }
  return count;
}

function compose(tokens: readonly CST.Token[], length: number, restore: (text: string) => string): ParsedYaml {
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    // The parser would compare every pair of keys. `nodeToJson` finds duplicate keys with a map.
    uniqueKeys: false,
    logLevel: 'silent',
  });
  const mistakes: YamlMistake[] = [];
  // By default the composer creates an Error with a stack for each mistake, which takes seconds and gigabytes for a million.
  Object.defineProperty(composer, 'onError', {
    value: (where: MistakePlace, code: ErrorCode, message: string) => {
      if (mistakes.length < MAX_MISTAKES) mistakes.push({ code, message, ...placeOf(where) });
    },
  });
  const documents: Document.Parsed[] = [];
  let secondAt: number | undefined;
  let documentTokens = 0;
  let errorTokens = 0;
  for (const token of tokens) {
    if (token.type === 'error' && ++errorTokens > MAX_MISTAKES) continue;
    if (token.type === 'document' && ++documentTokens > 1) {
      secondAt = token.offset;
      break;
    }
    documents.push(...composer.next(token));
  }
  documents.push(...composer.end(true, length));
  const document = documents[0] as Document.Parsed;
  for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
    mistakes.push({ code, message, start: pos[0], end: pos[1] });
  }
  return { kind: 'document', document, errors: mistakes, secondAt, restore };
}

type MistakePlace = number | readonly number[] | { readonly offset: number; readonly source?: unknown };

function placeOf(where: MistakePlace): { start: number; end: number } {
  if (typeof where === 'number') return { start: where, end: where + 1 };
  if ('offset' in where) {
    return { start: where.offset, end: where.offset + (typeof where.source === 'string' ? where.source.length : 1) };
  }
  return { start: where[0] as number, end: where[1] as number };
}
