/** Creates a value when it is first needed. */

/** @returns a function that calls `create` once, and always returns that result */
export function once<T>(create: () => T): () => T {
  let created: { readonly value: T } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

/** The same for each key. @param max - how many results are kept */
export function onceEach<T>(create: (key: string) => T, max: number): (key: string) => T {
  const created = new Map<string, T>();
  return (key) => {
    const known = created.get(key);
    if (known !== undefined) return known;
    const value = create(key);
    if (created.size >= max) created.clear();
    created.set(key, value);
    return value;
  };
}
