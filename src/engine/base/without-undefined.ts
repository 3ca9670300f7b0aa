/** The fields that an object has. */

/** @returns a copy without the keys whose value is undefined */
export function withoutUndefined<T extends object>(given: T): { readonly [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
