/** The messages of the Postgres protocol that run a prepared statement, as bytes. */

import { joinBytes } from '../../../../engine/base/bytes/join-bytes.ts';
import type { SqlParam, Statement } from './driver.ts';

const encoder = new TextEncoder();
const NULL_LENGTH = -1;

/** Prepares a statement. Closes an earlier one of the same name first, if there is one. */
export function prepareMessages({ name, text }: Statement): readonly Uint8Array[] {
  return [message('C', [encoder.encode(`S${name}\0`)]), message('P', [encoder.encode(`${name}\0${text}\0`), int16(0)])];
}

/** Runs a prepared statement. Parameters and results are in text format. */
export function executeMessages({ name }: Statement, params: readonly SqlParam[]): readonly Uint8Array[] {
  const values = params.flatMap((param) => {
    if (param === null) return [int32(NULL_LENGTH)];
    const bytes = encoder.encode(String(param));
    return [int32(bytes.length), bytes];
  });
  return [
    message('B', [encoder.encode(`\0${name}\0`), int16(0), int16(params.length), ...values, int16(0)]),
    message('E', [encoder.encode('\0'), int32(0)]),
    message('S', []),
  ];
}

/** A message is its type, its length without the type, and its content. */
function message(type: string, content: readonly Uint8Array[]): Uint8Array {
  const body = joinBytes(content);
  return joinBytes([encoder.encode(type), int32(body.length + 4), body]);
}

function int16(value: number): Uint8Array {
  return new Uint8Array([value >>> 8, value & 0xff]);
}

function int32(value: number): Uint8Array {
  return new Uint8Array([value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff]);
}
