/** The types of values with expressions in their texts. */

import type { Json } from '../../../base/json/json.ts';
import type { ParsedPart } from '../../../expression/syntax/parsed-expressions.ts';
import { isAt, isInPart, type NeededValue } from '../../../operation/needed-value.ts';
import type { Operation } from '../../../operation/operation.port.ts';
import type { Path } from '../../source/problem.ts';
import { infer } from '../infer/infer.ts';
import { type Field, listOf, literal, recordOf, required, type Scalar, STRING, type Type, union } from '../type.ts';
import { checkConfigValue, checkNeeded } from './config-types.ts';
import { type At, contextOf, type Walker } from './walker.ts';

/** What is known about the config that a value is in. */
export interface ConfigPlace {
  /** The path of the config. */
  readonly root: Path;
  readonly operation: Operation | undefined;
  readonly needs: readonly NeededValue[];
}

/** The type of a value with expressions in its texts. */
export function valueType(value: Json, at: At, walker: Walker, config?: ConfigPlace): Type {
  if (typeof value === 'string') return textType(value, at, walker, config);
  if (typeof value !== 'object' || value === null) return literal(value as Scalar | null);
  if (Array.isArray(value)) {
    const items = (value as Json[]).map((item, i) => valueType(item, { ...at, path: [...at.path, i] }, walker, config));
    return listOf(union(items), items.length);
  }
  return recordOf(
    Object.entries(value).map(([key, inner]): [string, Field] => [
      key,
      required(valueType(inner as Json, { ...at, path: [...at.path, key] }, walker, config)),
    ]),
  );
}

function textType(text: string, at: At, walker: Walker, config: ConfigPlace | undefined): Type {
  const parts = text.includes('{') ? walker.parsed.all(text) : [];
  if (parts.length === 0) return literal(text);
  const path = config ? at.path.slice(config.root.length) : [];
  const kind = config?.operation?.texts?.[path.join('.')];
  const flow = contextOf(text, at, walker);
  let type: Type = STRING;
  for (const part of parts) {
    const isFilled = kind !== undefined && text.startsWith('{{', part.start - 2);
    type = infer(part.root, isFilled ? { ...flow, data: at.data } : flow);
    for (const need of config?.needs ?? [])
      if (isAt(need, path) && isInPart(need, text.slice(0, part.start)))
        checkNeeded(need, text, part, type, at, walker);
  }
  if (!isWhole(text, parts) || kind === 'sql') return STRING;
  const schema = config?.operation?.config;
  if (schema && type.kind !== 'any') checkConfigValue(type, walker.schemas.of(schema, 'input'), path, at, walker);
  return type;
}

/** Whether a text is one `${...}` and nothing else, so that its value is not turned into text. */
function isWhole(text: string, [only, second]: readonly ParsedPart[]): boolean {
  return second === undefined && only?.start === 2 && only.end === text.length - 1 && text.startsWith('${');
}
