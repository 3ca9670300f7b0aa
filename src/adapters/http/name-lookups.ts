/** Looks up names for `nodeHttp`. A name that no server answers delays neither other names nor the rest of the process. */

import { Resolver, lookup as systemLookup } from 'node:dns/promises';

/** Returns all addresses of a name. */
export type ResolveName = (host: string) => Promise<readonly string[]>;

export interface NameLookupOptions {
  /** Default: the system's resolver, with its hosts file and search domains. A look-up occupies a thread until it ends, and can't be cancelled. */
  readonly system?: ResolveName | undefined;
  /** Default: only the name servers, without a thread. */
  readonly servers?: ResolveName | undefined;
  /** How long other look-ups wait for one of the system, in ms. Default 2,000. */
  readonly retryForMs?: number | undefined;
}

interface Waiting {
  begin(resolve: ResolveName): void;
}

/**
 * Asks the system for one name at a time. Half of the process's threads are for look-ups, two by default, and a name that no server
 * answers occupies one for half a minute. So one thread remains for the database client. A look-up that has waited too long for the
 * system, or finds it occupied for that long, goes to the name servers. Concurrent look-ups of the same name share one answer.
 */
export function nameLookups(options: NameLookupOptions = {}): ResolveName {
  const { system = askSystem, servers = askServers, retryForMs = 2_000 } = options;
  const shared = new Map<string, Promise<readonly string[]>>();
  const waiting = new Set<Waiting>();
  let occupied: 'no' | 'yes' | 'for long' = 'no';

  const bySystem: ResolveName = async (host) => {
    occupied = 'yes';
    const timer = setTimeout(() => {
      occupied = 'for long';
    }, retryForMs);
    try {
      return await system(host);
    } finally {
      clearTimeout(timer);
      occupied = 'no';
      const [next] = waiting;
      next?.begin(bySystem);
    }
  };

  const inTurn = (host: string) =>
    new Promise<readonly string[]>((resolve) => {
      const one: Waiting = {
        begin(how) {
          clearTimeout(timer);
          waiting.delete(one);
          resolve(how(host));
        },
      };
      const timer = setTimeout(() => one.begin(servers), retryForMs);
      waiting.add(one);
    });

  return (host) => {
    const known = shared.get(host);
    if (known) return known;
    const how = occupied === 'no' ? bySystem : occupied === 'yes' ? inTurn : servers;
    const found = how(host).finally(() => shared.delete(host));
    shared.set(host, found);
    return found;
  };
}

async function askSystem(host: string): Promise<readonly string[]> {
  return (await systemLookup(host, { all: true })).map((entry) => entry.address);
}

async function askServers(host: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  try {
    return await resolver.resolve4(host);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENODATA') throw thrown;
    return await resolver.resolve6(host);
  }
}
