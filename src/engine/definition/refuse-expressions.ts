/** Refuses `${...}` where a definition holds plain values, so that nobody waits for it to be evaluated. */

import type { Json } from '../json.ts';
import type { Report } from './check-shape.ts';
import type { Path } from './problem.ts';

/** @param path - where the value stands */
export function refuseExpressions(value: Json, path: Path, report: Report): void {
  if (typeof value === 'string') {
    if (value.includes('${')) {
      const message = 'is a plain value, in which `${...}` is not evaluated; write the value itself';
      report({ path, offset: value.indexOf('${'), length: 2, message });
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      refuseExpressions(inner as Json, [...path, Array.isArray(value) ? Number(key) : key], report);
    }
  }
}
