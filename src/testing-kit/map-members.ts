/** Wraps a port: reads of its members give other members. */

/**
 * The target of the proxy is an empty object, so that frozen ports work. `map` must call a method with the port itself as
 * `this`, so that classes with private fields work.
 * @param map - returns the new member for a member of the port
 */
export function mapMembers<P extends object>(port: P, map: (member: unknown, key: string | symbol) => unknown): P {
  return new Proxy({} as P, {
    get: (_empty, key) => map(Reflect.get(port, key), key),
    has: (_empty, key) => key in port,
    // For `Object.hasOwn`. A proxy may report only what can be configured, because its target does not have the member.
    getOwnPropertyDescriptor: (_empty, key) =>
      Object.hasOwn(port, key)
        ? { value: map(Reflect.get(port, key), key), configurable: true, enumerable: true, writable: true }
        : undefined,
  });
}
