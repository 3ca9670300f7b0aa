/** The tag of a registration, for a change that expects what the caller has read. */

import { hashJson } from '../../engine/base/bytes/hash.ts';
import type { Json } from '../../engine/base/json/json.ts';
import type { Registration } from '../../engine/component/component-source.port.ts';

/** @returns a text that is equal for the same kind, file and metadata */
export function registrationTag({ kind, file, metadata }: Omit<Registration, 'name'>): string {
  return hashJson({ kind, metadata, ...(file !== undefined && { file }) } as unknown as Json);
}
