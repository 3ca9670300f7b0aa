/** Looks names up for `nodeHttp`, so that a name which nobody answers holds up neither the others nor the rest of the process. */

import { Resolver, lookup as systemLookup } from 'node:dns/promises';

/** Gives all addresses of a name. */
export type ResolveName = (host: string) => Promise<readonly string[]>;

export interface NameLookupOptions {
  /** Default the system's: hosts file, search domains, whatever is set up. It can't be called off, and holds a thread until it ends. */
  readonly system?: ResolveName;
  /** Default the name servers alone, without a thread. */
  readonly servers?: ResolveName;
  /** How long, in ms, others wait for a look-up of the system. Default 2,000. */
  readonly patienceMs?: number;
}

interface Waiting {
  begin(resolve: ResolveName): void;
}

/**
 * Asks the system for one name at a time: of its threads, half are for look-ups, two by default, and a name that nobody answers
 * holds one for half a minute. So one is left for the database's client. What has waited for the system too long, or finds it
 * occupied for that long, is asked of the name servers. A name that is being looked up already is not asked again.
 */
export function nameLookups(options: NameLookupOptions = {}): ResolveName {
  const { system = askSystem, servers = askServers, patienceMs = 2_000 } = options;
  const shared = new Map<string, Promise<readonly string[]>>();
  const waiting = new Set<Waiting>();
  let occupied: 'no' | 'yes' | 'for long' = 'no';

  const bySystem: ResolveName = async (host) => {
    occupied = 'yes';
    const timer = setTimeout(() => {
      occupied = 'for long';
    }, patienceMs);
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
      const timer = setTimeout(() => one.begin(servers), patienceMs);
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
