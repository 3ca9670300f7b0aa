/** Functions over the UTF-8 bytes of a text. */

import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { toBase64 } from '../../base/bytes/base64.ts';
import type { Json } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, EvaluationProblem } from '../evaluation-problem.ts';
import { MAX_BUILT_LENGTH } from '../syntax/limits.ts';
import { tooLongText } from '../to-text.ts';
import { textAt } from './arguments.ts';
import { type FunctionTable, takes, takesValue } from './function-table.ts';

export const hashFunctions = {
  base64: takesValue(1, 1, (args, evaluation) => base64(bytesAt(args, 0, evaluation))),
  sha256: takesValue(1, 1, (args, evaluation) => bytesToHex(sha256(bytesAt(args, 0, evaluation)))),
  hmac: takes(2, 2, (args, evaluation) => {
    // An empty key must not sign anything: everybody can guess it.
    if (textAt(args, 1) === '') throw new EvaluationProblem('argument 2, the key, must not be empty');
    if (args[0] === null) return null;
    return bytesToHex(hmac(sha256, bytesAt(args, 1, evaluation), bytesAt(args, 0, evaluation)));
  }),
} satisfies FunctionTable;

function bytesAt(args: readonly Json[], position: number, evaluation: Evaluation): Uint8Array {
  const text = textAt(args, position);
  charge(evaluation, text.length);
  return new TextEncoder().encode(text);
}

function base64(bytes: Uint8Array): string {
  const length = Math.ceil(bytes.length / 3) * 4;
  if (length > MAX_BUILT_LENGTH) throw tooLongText(length);
  return toBase64(bytes);
}
