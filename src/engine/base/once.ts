/** Creates a value when it is first needed. */

/** @returns a function that calls `create` once, and always returns that result */
export function once<T>(create: () => T): () => T {
  let created: { readonly value: T } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}
