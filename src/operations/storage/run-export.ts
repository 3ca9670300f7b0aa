/** Runs `action: export`: rows as text, in the output or as an object of a store. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { copySized, type Json, type JsonObject, MAX_VALUE_BYTES } from '../../engine/base/json/json.ts';
import type { KvStore, ObjectStore } from '../../engine/storage/data.port.ts';
import { CONTENT_TYPES, createRowWriter, type RowFormat, type RowWriter } from './row-text.ts';
import { statementOf } from './run-sql.ts';
import { keyOf, STORE_PAGE } from './run-stores.ts';
import type { Binding, StorageConfig } from './storage-config.ts';

/** What is left of the largest output for the keys around the rows and their text. */
const MAX_EXPORT_BYTES = MAX_VALUE_BYTES - 4096;
/** The most bytes that are collected for a store that takes no parts. */
const MAX_COLLECTED_BYTES = 16 * 1024 * 1024;

/** The columns of a store's rows. Those of SQL are known with the first row only. */
const COLUMNS: Readonly<Record<Binding['kind'], readonly string[] | undefined>> = {
  kv: ['key', 'value'],
  objects: ['key', 'size', 'contentType', 'updatedAt'],
  sql: undefined,
};

export interface ExportTarget {
  readonly name: string;
  readonly store: ObjectStore;
}

interface ExportDependencies {
  readonly now: number;
  readonly signal: AbortSignal;
  /** Where `exportOptions.to` leads. */
  readonly target: ExportTarget | undefined;
}

export async function runExport(
  source: Binding,
  given: StorageConfig,
  dependencies: ExportDependencies,
): Promise<Json> {
  const { format = 'json', exportOptions: { headers, fields, to } = {} } = given;
  const writer = createRowWriter({ format: format as RowFormat, headers, fields, columns: COLUMNS[source.kind] });
  const rows = readRows(source, given, dependencies);
  const contentType = CONTENT_TYPES[format as RowFormat];
  if (!to || !dependencies.target) return { ...(await collect(rows, writer)), contentType };
  const { name: binding, store } = dependencies.target;
  const key = keyOf(to.key);
  const counted = { rows: 0 };
  const content = encodeRows(rows, writer, counted);
  const object = { contentType, updatedAt: dependencies.now };
  const size = await (store.putStream
    ? store.putStream(key, { ...object, content })
    : putCollected(store, key, { ...object, content: await joinParts(content, binding) }));
  return { key, binding, contentType, count: counted.rows, size };
}

async function putCollected(
  store: ObjectStore,
  key: string,
  object: Parameters<ObjectStore['put']>[1],
): Promise<number> {
  const size = object.content.byteLength;
  await store.put(key, object);
  return size;
}

/** The rows in parts. */
function readRows(
  source: Binding,
  given: StorageConfig,
  dependencies: ExportDependencies,
): AsyncIterable<readonly JsonObject[]> {
  if (source.kind === 'sql') return source.stream(statementOf(given), { signal: dependencies.signal });
  return readStore(source, given.prefix, dependencies);
}

async function* readStore(
  store: KvStore | ObjectStore,
  prefix: string | undefined,
  { now, signal }: ExportDependencies,
): AsyncGenerator<readonly JsonObject[], void> {
  let after: string | undefined;
  for (;;) {
    const page = {
      limit: STORE_PAGE,
      now,
      signal,
      ...(prefix !== undefined && { prefix }),
      ...(after !== undefined && { after }),
    };
    signal.throwIfAborted();
    const keys = await store.list(page);
    for (const key of keys) {
      signal.throwIfAborted();
      const row = await (store.kind === 'kv' ? readValue(store, key, now) : describeObject(store, key));
      // It was deleted since it was listed.
      if (row) yield [row];
    }
    if (keys.length < STORE_PAGE) return;
    after = keys.at(-1);
  }
}

async function readValue(kv: KvStore, key: string, now: number): Promise<JsonObject | undefined> {
  const value = await kv.get(key, now);
  return value === undefined ? undefined : { key, value };
}

async function describeObject(objects: ObjectStore, key: string): Promise<JsonObject | undefined> {
  const object = await objects.get(key);
  if (!object) return undefined;
  const { content, contentType, updatedAt } = object;
  return { key, size: content.byteLength, contentType, updatedAt: new Date(updatedAt).toISOString() };
}

async function collect(rows: AsyncIterable<readonly JsonObject[]>, writer: RowWriter): Promise<JsonObject> {
  const data: JsonObject[] = [];
  const texts: string[] = [];
  let bytes = 0;
  const add = (text: string) => {
    bytes += text.length;
    texts.push(text);
  };
  for await (const part of rows) {
    for (const row of part) {
      const picked = writer.pick(row);
      add(writer.write(picked));
      bytes += 16 + copySized(picked).bytes;
      data.push(picked);
      if (bytes > MAX_EXPORT_BYTES)
        throw new OrchestratorError(
          'INVALID_OUTPUT',
          `storage: the export is too large for an output of ${MAX_VALUE_BYTES / 1_048_576} MiB, which holds its rows and their text; write it to an object with \`exportOptions.to\``,
        );
    }
  }
  add(writer.end());
  return { data, content: texts.join(''), count: data.length };
}

const encoder = new TextEncoder();

async function* encodeRows(
  rows: AsyncIterable<readonly JsonObject[]>,
  writer: RowWriter,
  counted: { rows: number },
): AsyncGenerator<Uint8Array, void> {
  for await (const part of rows) {
    let text = '';
    for (const row of part) text += writer.write(writer.pick(row));
    counted.rows += part.length;
    if (text !== '') yield encoder.encode(text);
  }
  const end = writer.end();
  if (end !== '') yield encoder.encode(end);
}

/** @throws INVALID_OUTPUT if the parts are too large for a store that takes an object as a whole */
async function joinParts(content: AsyncIterable<Uint8Array>, binding: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of content) {
    size += part.byteLength;
    if (size > MAX_COLLECTED_BYTES)
      throw new OrchestratorError(
        'INVALID_OUTPUT',
        `storage: the store of binding \`${binding}\` takes an object as a whole, and this export has more than ${MAX_COLLECTED_BYTES / 1_048_576} MiB; use a store that takes objects in parts (with \`putStream\`)`,
      );
    parts.push(part);
  }
  const joined = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.byteLength;
  }
  return joined;
}
