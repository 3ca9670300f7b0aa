/** Decides which hosts, ports and addresses outbound HTTP may reach: public ones, and those in `allow`. Pure. Used by every client. */

import {
  type Address,
  type AddressRange,
  isInRange,
  isV6,
  parseAddress,
  parseRange,
  specialRange,
} from '../../engine/base/ip-address.ts';

/** A compiled `allow` list. Hosts have the form of `URL.hostname`. */
export interface AddressRules {
  /** Whether `allow` matches this host by a name, a wildcard, an address or a range. Then no other rule applies. */
  allowsHost(host: string, port: number): boolean;
  /** Why a URL's host and port are refused, or undefined. No name is looked up. */
  hostProblem(host: string, port: number): string | undefined;
  /** Why an address to which a name resolved is refused, or undefined. */
  addressProblem(address: string, port: number): string | undefined;
}

/** The port of a URL, or that of its scheme. */
export function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

type Entry =
  | { readonly kind: 'range'; readonly range: AddressRange; readonly port?: number | undefined }
  | { readonly kind: 'name'; readonly name: string; readonly wildcard: boolean; readonly port?: number | undefined };

/**
 * Compiles an allow list.
 *
 * @param allow - ranges (`10.0.0.0/8`, `fd00::/8`), addresses (`127.0.0.1`, `::1`), names (`localhost`), and wildcards
 *   (`*.internal.example`: names below it, but not the name itself). All except ranges may have a `:port`
 * @param namesAreUnseen - the client does not check the addresses of names. Then names of private networks are refused
 * @throws TypeError for any other entry
 */
export function addressRules(allow: readonly string[] = [], namesAreUnseen = false): AddressRules {
  if (!Array.isArray(allow)) throw new TypeError("`allow` must be a list, such as ['localhost:3000', '10.0.0.0/8']");
  const entries = allow.map(parseEntry);

  const allowsAddress = (address: Address, port: number): boolean =>
    entries.some(
      (entry) =>
        entry.kind === 'range' &&
        (entry.port === undefined || entry.port === port) &&
        [address, unwrap(address)].some((form) => isInRange(form, entry.range)),
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
      if (port !== 80 && port !== 443 && port < 1024) return `port ${port} is not 80, 443 or 1024 to 65535`;
      const literal = literalAddress(host);
      if (literal !== undefined) return publicProblem(literal);
      const name = withoutFinalDots(host);
      if (isLocalName(name)) return 'its host is a local name';
      return namesAreUnseen && isPrivateName(name) ? 'its host is a name of a private network' : undefined;
    },
    addressProblem(address, port) {
      const parsed = parseAddress(address);
      if (!parsed) return 'its host resolves to something that is not an address';
      if (allowsAddress(parsed, port)) return undefined;
      const problem = publicProblem(parsed);
      return problem && `its host resolves to an address that may not be reached: ${problem}`;
    },
  };
}

// The URL parser has converted every spelling of an IPv4 address (hex, octal, short, one number) to dotted decimal.
function literalAddress(host: string): Address | undefined {
  return parseAddress(host.startsWith('[') ? host.slice(1, -1) : host);
}

// An IPv4 address in an IPv6 address is judged as the IPv4 address if packets reach it: mapped, and NAT64's well-known prefix.
function unwrap(address: Address): Address {
  return WRAPPED.some((range) => isInRange(address, range)) ? address.slice(6) : address;
}

const WRAPPED: readonly AddressRange[] = [
  { network: [0, 0, 0, 0, 0, 0xffff, 0, 0], bits: 96 },
  { network: [0x64, 0xff9b, 0, 0, 0, 0, 0, 0], bits: 96 },
];

// The last half of an ISATAP address contains the IPv4 address to which packets are forwarded, with any prefix.
function tunnelledAddress(address: Address): Address | undefined {
  const [, , , , scope, mark] = address;
  return isV6(address) && (scope === 0 || scope === 0x200) && mark === 0x5efe ? address.slice(6) : undefined;
}

// Refused by default: an address must be known as public. For IPv6, this means 2000::/3 without its special ranges, such as 6to4 and
// Teredo. This also excludes ::127.0.0.1 and unassigned addresses.
function publicProblem(address: Address): string | undefined {
  const judged = unwrap(address);
  const inner = tunnelledAddress(judged);
  if (inner && publicProblem(inner) !== undefined) return publicProblem(inner);
  if (isInRange(judged, AZURE_WIRE_SERVER)) return "the address is a cloud's own service";
  const range = specialRange(judged) ?? (isV6(judged) && !isInRange(judged, GLOBAL_UNICAST) ? 'unassigned' : undefined);
  return range && `the address is not public (${range})`;
}

const GLOBAL_UNICAST: AddressRange = { network: [0x2000, 0, 0, 0, 0, 0, 0, 0], bits: 3 };

/** A public address, but on Azure the host of a virtual machine answers it, with certificates and settings. */
const AZURE_WIRE_SERVER: AddressRange = { network: [0xa83f, 0x8110], bits: 32 };

// Names that mean this machine or a cloud's metadata service wherever they resolve.
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

// No public name server answers these names: an answer comes from a private network, a cluster or this machine.
function isPrivateName(name: string): boolean {
  return !name.includes('.') || PRIVATE_SUFFIXES.some((suffix) => name.endsWith(suffix));
}

const PRIVATE_SUFFIXES: readonly string[] = ['.home.arpa', '.internal', '.local', '.svc'];

function withoutFinalDots(host: string): string {
  let end = host.length;
  while (end > 0 && host[end - 1] === '.') end--;
  return host.slice(0, end);
}

function parseEntry(text: string): Entry {
  const bad = (why: string) =>
    new TypeError(
      `allow entry ${JSON.stringify(text)} ${why}; write '10.0.0.0/8', '127.0.0.1', 'localhost', 'localhost:3000' or '*.internal.example'`,
    );
  if (typeof text !== 'string' || text === '') throw bad('is empty or not a string');
  if (text.includes('/')) {
    const range = parseRange(text);
    if (!range) throw bad('is not an address range');
    const inner = unwrap(range.network);
    if (inner === range.network) return { kind: 'range', range };
    if (range.bits < 128) throw bad('is a range of IPv4 addresses written as IPv6');
    return wholeNetwork(inner, undefined);
  }
  const wildcard = text.startsWith('*.');
  const rest = wildcard ? text.slice(2) : text.includes(':') && parseAddress(text) ? `[${text}]` : text;
  const [, bare = '', portText] = /^([^:]+|\[[^\]]+\])(?::(\d{1,5}))?$/.exec(rest) ?? [];
  const port = portText === undefined ? undefined : Number(portText);
  if (port !== undefined && (port < 1 || port > 65_535)) throw bad('has a port outside 1 to 65535');
  const host =
    bare && !/[\s\\?#@*%]/.test(bare) && URL.canParse(`http://${bare}`) ? new URL(`http://${bare}`).hostname : '';
  const name = withoutFinalDots(host);
  if (name === '') throw bad('is not a host');
  const literal = literalAddress(name);
  if (literal === undefined) return { kind: 'name', name, wildcard, port };
  if (wildcard) throw bad('puts a wildcard before an address');
  return wholeNetwork(unwrap(literal), port);
}

function wholeNetwork(network: Address, port: number | undefined): Entry {
  return { kind: 'range', range: { network, bits: network.length * 16 }, port };
}
