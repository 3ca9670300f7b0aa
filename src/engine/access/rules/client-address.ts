/** The address of a client as its requests are counted, and the walk through the proxies before it. */

import { type Address, type AddressRange, isInRange, parseAddress, parseRange } from '../../base/ip-address.ts';

/** A network with IPv6 gives a customer at least this many bits for itself. */
const COUNTED_WORDS = 3;
const COUNTED_BITS = 0xff00;
const MAPPED: AddressRange = { network: [0, 0, 0, 0, 0, 0xffff, 0, 0], bits: 96 };

/** An IPv4 address that is written as an IPv6 address counts as the IPv4 address. */
function parse(text: string): Address | undefined {
  const address = parseAddress(text);
  return address && isInRange(address, MAPPED) ? address.slice(6) : address;
}

/**
 * Names the client that an address belongs to: an IPv4 address, or the first 56 bits of an IPv6 address.
 * @returns undefined for text that is not an address
 */
export function clientOf(text: string): string | undefined {
  const address = parse(text);
  if (!address) return undefined;
  if (address.length === 2) return address.map((word) => `${word >> 8}.${word & 255}`).join('.');
  const counted = [...address.slice(0, COUNTED_WORDS), (address[COUNTED_WORDS] as number) & COUNTED_BITS];
  return `${counted.map((word) => word.toString(16)).join(':')}::/56`;
}

/** Which proxies are trusted to say from where a request came: a number of them (`true` is one), or their addresses and ranges. */
export type TrustProxy = boolean | number | readonly string[];

/** Finds the address of the client. @param forwarded - the header `X-Forwarded-For` */
export type FindAddress = (peer: string | undefined, forwarded: string | undefined) => string | undefined;

const MAX_HOPS = 32;

/**
 * @returns a function that walks from the peer to the left through `X-Forwarded-For`, for as long as it meets trusted proxies. What
 *   stands left of an entry that is not an address is not read
 * @throws TypeError for a wrong value
 */
export function createFindAddress(trust: TrustProxy = false): FindAddress {
  if (trust === false) return (peer) => peer;
  const isTrusted = toTrust(trust === true ? 1 : trust);
  return (peer, forwarded) => {
    if (forwarded === undefined || peer === undefined) return peer;
    const hops = forwarded.split(',', 1000).map(withoutPort);
    let address = peer;
    for (let hop = 0; isTrusted(address, hop); hop++) {
      const before = hops[hops.length - 1 - hop];
      if (before === undefined || !parse(before)) break;
      address = before;
    }
    return address;
  };
}

/** Some proxies add the port of the client: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  const [, inBrackets, bare] = /^\s*(?:\[([^\]]*)\]|([^:\s]*))(?::\d{1,5})?\s*$/.exec(hop) ?? [];
  return inBrackets ?? bare ?? hop.trim();
}

function toTrust(trust: number | readonly string[]): (address: string, hop: number) => boolean {
  if (typeof trust === 'number' && Number.isInteger(trust) && trust >= 1 && trust <= MAX_HOPS) {
    return (_address, hop) => hop < trust;
  }
  if (!Array.isArray(trust) || trust.length === 0) {
    throw new TypeError(
      `\`trustProxy\` must be a boolean, the number of proxies (1 to ${MAX_HOPS}), or a list of their addresses and ranges such as ['10.0.0.0/8']`,
    );
  }
  const ranges = trust.map(toRange);
  return (text) => {
    const address = parse(text);
    return address !== undefined && ranges.some((range) => isInRange(address, range));
  };
}

function toRange(text: unknown): AddressRange {
  const address = typeof text === 'string' ? parse(text) : undefined;
  const range = address ? { network: address, bits: address.length * 16 } : parseRange(String(text));
  if (range) return range;
  throw new TypeError(
    `\`trustProxy\`: ${JSON.stringify(text)} is not an address or a range; write '10.0.0.1' or '10.0.0.0/8'`,
  );
}
