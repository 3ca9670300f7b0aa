/** For routes that take everything from the path. */

import * as z from 'zod/mini';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import type { HttpCall } from '../call.ts';
import { readJson } from '../request/read-json.ts';

const emptyBody = once(() => z.strictObject({}));

/** @throws INVALID_REQUEST for a body other than `{}` */
export async function refuseContent(call: HttpCall): Promise<void> {
  readShape(emptyBody(), await readJson(call), 'the body is not valid');
}
