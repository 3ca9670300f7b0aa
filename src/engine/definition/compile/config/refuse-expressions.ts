/** Refuses `${...}` in values that are never evaluated, so that its author notices the mistake. */

import type { Json } from '../../../base/json/json.ts';
import type { Report } from '../../forms/check-shape.ts';
import type { Path } from '../../source/problem.ts';

/** @param path - the path of the value in the definition */
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
