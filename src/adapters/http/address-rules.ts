/** Which hosts, ports and addresses outbound HTTP may reach: public ones, and what `allow` names. Pure; every client asks here. */

import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** The compiled form of an `allow` list. Hosts are as `URL.hostname` gives them. */
export interface AddressRules {
  /** Whether `allow` names this very host (a name, a wildcard, an address or a range), so that nothing more is asked. */
  allowsHost(host: string, port: number): boolean;
  /** Why a URL's host and port are refused, judged without looking any name up; undefined when they pass. */
  hostProblem(host: string, port: number): string | undefined;
  /** Why an address that a name resolved to is refused; undefined when it passes. */
  addressProblem(address: string, port: number): string | undefined;
}

type Entry =
  | { readonly kind: 'range'; readonly network: Address; readonly bits: number; readonly port?: number }
  | { readonly kind: 'name'; readonly name: string; readonly wildcard: boolean; readonly port?: number };

/**
 * Compiles an allow list.
 *
 * @param namesAreUnseen - what names resolve to is not judged: names that only a private network answers are refused then
 * @param allow - ranges (`10.0.0.0/8`, `fd00::/8`), addresses (`127.0.0.1`, `::1`), names (`localhost`),
 *   wildcards (`*.internal.example`: names below it, not itself); each but a range also with `:port`
 * @throws TypeError for an entry that is none of these
 */
export function addressRules(allow: readonly string[] = [], namesAreUnseen = false): AddressRules {
  const entries = allow.map(parseEntry);

  const allowsAddress = (address: Address, port: number): boolean =>
    entries.some(
      (entry) =>
        entry.kind === 'range' &&
        (entry.port === undefined || entry.port === port) &&
        [address, unwrap(address)].some((form) => inRange(form, entry.network, entry.bits)),
    );

  const allowsHost = (host: string, port: number): boolean => {
    const literal = literalAddress(host);
    if (literal !== undefined) return allowsAddress(literal, port);
    const name = withoutFinalDots(host);
    return entries.some(
      (entry) =>
        entry.kind === 'name' &&
        (entry.port === undefined || entry.port === port) &&
        (entry.wildcard ? name.endsWith(`.${entry.name}`) : name === entry.name),
    );
  };

  return {
    allowsHost,
    hostProblem(host, port) {
      if (allowsHost(host, port)) return undefined;
      if (port !== 80 && port !== 443 && port < 1024) return `port ${port} is none of 80, 443 and 1024 to 65535`;
      const literal = literalAddress(host);
      if (literal !== undefined) return publicProblem(literal);
      const name = withoutFinalDots(host);
      if (isLocalName(name)) return 'its host is a local name';
      return namesAreUnseen && isPrivateName(name) ? 'its host is a name of a private network' : undefined;
    },
    addressProblem(address, port) {
      if (!ipaddr.isValid(address)) return 'its host resolves to something that is no address';
      const parsed = ipaddr.parse(address);
      if (allowsAddress(parsed, port)) return undefined;
      const problem = publicProblem(parsed);
      return problem && `its host resolves to an address that may not be reached: ${problem}`;
    },
  };
}

// The URL parser has already turned every spelling of an IPv4 address (hex, octal, short, one number) into dotted decimal.
function literalAddress(host: string): Address | undefined {
  if (host.startsWith('[')) return ipaddr.IPv6.parse(host.slice(1, -1));
  return /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host) ? ipaddr.IPv4.parse(host) : undefined;
}

// An IPv4 address inside an IPv6 one is judged as itself where packets really go there: mapped, and NAT64's well-known prefix.
function unwrap(address: Address): Address {
  if (!isV6(address)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const [first, second, third, fourth, fifth, sixth, high = 0, low = 0] = address.parts;
  if (first === 0x64 && second === 0xff9b && !third && !fourth && !fifth && !sixth) {
    return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
  }
  return address;
}

// ISATAP keeps the IPv4 address that packets are sent on to in its last half, below any prefix.
function tunnelled(address: Address): ipaddr.IPv4 | undefined {
  if (!isV6(address)) return undefined;
  const [, , , , owner, mark, high = 0, low = 0] = address.parts;
  if ((owner !== 0 && owner !== 0x200) || mark !== 0x5efe) return undefined;
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}

// Default deny: an address must be known as public. For IPv6 that is 2000::/3 less its special ranges (6to4 and Teredo among
// them), which also keeps out ::127.0.0.1 and whatever is not assigned.
function publicProblem(address: Address): string | undefined {
  const judged = unwrap(address);
  const inner = tunnelled(judged);
  if (inner && publicProblem(inner) !== undefined) return publicProblem(inner);
  if (judged.toString() === AZURE_WIRE_SERVER) return "the address is a cloud's own service";
  const range = judged.range();
  if (range === 'unicast' && (!isV6(judged) || ((judged.parts[0] ?? 0) & 0xe000) === 0x2000)) return undefined;
  return `the address is not public (${range === 'unicast' ? 'unassigned' : range})`;
}

/** Public by its number, and answered by the machine that an Azure VM runs on: with certificates and settings. */
const AZURE_WIRE_SERVER = '168.63.129.16';

// Names that mean this machine or a cloud's metadata service wherever they resolve at all.
function isLocalName(name: string): boolean {
  return LOCAL_NAMES.has(name) || name.endsWith('.localhost');
}

const LOCAL_NAMES: ReadonlySet<string> = new Set([
  '',
  'instance-data',
  'instance-data.ec2.internal',
  'ip6-localhost',
  'ip6-loopback',
  'localhost',
  'localhost.localdomain',
  'localhost4',
  'localhost4.localdomain4',
  'localhost6',
  'localhost6.localdomain6',
  'metadata',
  'metadata.google.internal',
]);

// No public name server answers these: whoever does is a private network's, a cluster's or this machine's.
function isPrivateName(name: string): boolean {
  return !name.includes('.') || PRIVATE_SUFFIXES.some((suffix) => name.endsWith(suffix));
}

const PRIVATE_SUFFIXES: readonly string[] = ['.home.arpa', '.internal', '.local', '.svc'];

function withoutFinalDots(host: string): string {
  let end = host.length;
  while (end > 0 && host[end - 1] === '.') end--;
  return host.slice(0, end);
}

function isV6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === 'ipv6';
}

function inRange(address: Address, network: Address, bits: number): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}

function parseEntry(text: string): Entry {
  const bad = (why: string) =>
    new TypeError(
      `allow entry ${JSON.stringify(text)} ${why}; write '10.0.0.0/8', '127.0.0.1', 'localhost', 'localhost:3000' or '*.internal.example'`,
    );
  if (typeof text !== 'string' || text === '') throw bad('is empty or not a string');
  if (text.includes('/')) {
    if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(text) && !ipaddr.IPv6.isValidCIDR(text))
      throw bad('is no address range');
    const [network, bits] = ipaddr.parseCIDR(text);
    if (unwrap(network) !== network && bits < 128) throw bad('is a range of IPv4 addresses written as IPv6');
    return unwrap(network) === network ? { kind: 'range', network, bits } : whole(unwrap(network), undefined);
  }
  const wildcard = text.startsWith('*.');
  const rest = wildcard ? text.slice(2) : ipaddr.IPv6.isValid(text) ? `[${text}]` : text;
  const [, bare = '', portText] = /^([^:]+|\[[^\]]+\])(?::(\d{1,5}))?$/.exec(rest) ?? [];
  const port = portText === undefined ? undefined : Number(portText);
  if (port !== undefined && (port < 1 || port > 65_535)) throw bad('has a port outside 1 to 65535');
  const host =
    bare && !/[\s\\?#@*%]/.test(bare) && URL.canParse(`http://${bare}`) ? new URL(`http://${bare}`).hostname : '';
  const name = withoutFinalDots(host);
  if (name === '') throw bad('is no host');
  const literal = literalAddress(name);
  if (literal === undefined) return { kind: 'name', name, wildcard, port };
  if (wildcard) throw bad('puts a wildcard before an address');
  return whole(unwrap(literal), port);
}

function whole(network: Address, port: number | undefined): Entry {
  return { kind: 'range', network, bits: isV6(network) ? 128 : 32, port };
}
