/** Parses IP addresses and ranges, and names the special range that an address is in. */

import { once } from './once.ts';

/** The 16-bit words of an address: two for IPv4, eight for IPv6. */
export type Address = readonly number[];

/** The addresses that begin with the same bits. */
export interface AddressRange {
  readonly network: Address;
  readonly bits: number;
}

/** @param text - dotted decimal, or IPv6, which may have a zone such as `%eth0` @returns undefined for any other text */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseV6(text.replace(/%[\w.~-]+$/, '')) : parseV4(text);
}

/** @param text - an address, `/` and the number of bits @returns undefined for any other text */
export function parseRange(text: string): AddressRange | undefined {
  const [, address = '', bits = ''] = /^([^/%]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const network = parseAddress(address);
  return network && Number(bits) <= network.length * 16 ? { network, bits: Number(bits) } : undefined;
}

function parseV4(text: string): Address | undefined {
  if (!/^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(text)) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
  return fromBytes(a, b, c, d);
}

/** The IPv4 address of four bytes. */
function fromBytes(a: number, b: number, c: number, d: number): Address {
  return [(a << 8) | b, (c << 8) | d];
}

// The URL parser checks the address and writes it in one form: words in hex, and `::` for at least two zeros.
function parseV6(text: string): Address | undefined {
  const url = `http://[${text}]`;
  if (!/^[\da-f:.]+$/i.test(text) || !URL.canParse(url)) return undefined;
  const [before, after] = new URL(url).hostname
    .slice(1, -1)
    .split('::')
    .map((half) => (half === '' ? [] : half.split(':').map((word) => Number.parseInt(word, 16))));
  const [head, tail] = [before ?? [], after ?? []];
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

export function isV6(address: Address): boolean {
  return address.length === 8;
}

export function isInRange(address: Address, { network, bits }: AddressRange): boolean {
  if (address.length !== network.length) return false;
  return address.every((word, i) => {
    const compared = Math.min(16, Math.max(0, bits - 16 * i));
    return (word ^ (network[i] as number)) >> (16 - compared) === 0;
  });
}

/** The name of the special range that an address is in, by the registries of IANA; undefined for any other address. */
export function specialRange(address: Address): string | undefined {
  return specialRanges().find(([, range]) => isInRange(address, range))?.[0];
}

const specialRanges = once(() =>
  Object.entries(SPECIAL_RANGES).flatMap(([name, ranges]) =>
    ranges.split(' ').map((range) => [name, parseRange(range) as AddressRange] as const),
  ),
);

/** In the order in which they are compared. `test/http/address-rules.test.ts` compares them with those of ipaddr.js. */
const SPECIAL_RANGES = {
  unspecified: '0.0.0.0/8 ::/128',
  broadcast: '255.255.255.255/32',
  multicast: '224.0.0.0/4 ff00::/8',
  linkLocal: '169.254.0.0/16 fe80::/10',
  loopback: '127.0.0.0/8 ::1/128',
  carrierGradeNat: '100.64.0.0/10',
  private: '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16',
  uniqueLocal: 'fc00::/7',
  ipv4Mapped: '::ffff:0:0/96',
  deprecatedSiteLocal: 'fec0::/10',
  discard: '100::/64',
  rfc6145: '::ffff:0:0:0/96',
  rfc6052: '64:ff9b::/96 64:ff9b:1::/48',
  '6to4': '2002::/16',
  teredo: '2001::/32',
  benchmarking: '2001:2::/48',
  amt: '192.52.193.0/24 2001:3::/32',
  as112: '192.175.48.0/24 192.31.196.0/24',
  as112v6: '2001:4:112::/48 2620:4f:8000::/48',
  deprecatedOrchid: '2001:10::/28',
  orchid2: '2001:20::/28',
  droneRemoteIdProtocolEntityTags: '2001:30::/28',
  segmentRouting: '5f00::/16',
  reserved:
    '192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20',
} as const;
