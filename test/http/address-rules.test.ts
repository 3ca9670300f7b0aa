import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { addressRules } from '../../src/adapters/http/address-rules.ts';
import { admitRequest } from '../../src/adapters/http/admit-request.ts';
import { parseAddress, specialRange } from '../../src/engine/base/ip-address.ts';

/** Checks a URL like the clients do: after URL parsing. */
function judge(url: string, allow: readonly string[] = [], namesAreUnseen = false): string | undefined {
  try {
    admitRequest({ method: 'GET', url }, addressRules(allow, namesAreUnseen));
    return undefined;
  } catch (error) {
    return (error as { details: { reason: string } }).details.reason;
  }
}

describe('addresses that are refused unless allowed', () => {
  it.each([
    [
      'a metadata service',
      ['169.254.169.254', 'metadata.google.internal', 'METADATA.google.internal.', 'metadata', 'instance-data'],
    ],
    [
      'a spelling of a local IPv4 address',
      ['2130706433', '0x7f000001', '0177.0.0.1', '127.1', '①②⑦.⓪.⓪.①', '127.0.0.1.', '0', '0.0.0.0', '%31%32%37.0.0.1'],
    ],
    [
      'a local name',
      [
        'localhost',
        'localhost.',
        'LOCALHOST',
        'a.localhost',
        'a.b.localhost.',
        'ip6-localhost',
        'localhost.localdomain',
      ],
    ],
    [
      'a local IPv6 address',
      ['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
    ],
    [
      'an IPv6 address with an IPv4 one',
      ['[64:ff9b::10.0.0.1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[2002:808:808::]', '[::ffff:0:7f00:1]'],
    ],
    [
      'an IPv6 address that is not public',
      [
        '[fe80::1]',
        '[fec0::1]',
        '[fd00::1]',
        '[fc00::1]',
        '[5f00::1]',
        '[100::1]',
        '[ff02::1]',
        '[4000::1]',
        '[f000::1]',
      ],
    ],
    [
      'a special IPv6 range',
      ['[2001::1]', '[2001:2::1]', '[2001:10::1]', '[2001:20::1]', '[2001:db8::1]', '[3fff::1]', '[::ffff:10.0.0.1]'],
    ],
    [
      'a private IPv4 address',
      [
        '127.0.0.2',
        '127.255.255.255',
        '10.1.2.3',
        '172.16.0.1',
        '172.31.255.255',
        '192.168.0.1',
        '100.64.0.1',
        '100.127.255.255',
      ],
    ],
    [
      'a special IPv4 range',
      ['192.0.0.8', '192.0.2.1', '192.88.99.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1'],
    ],
    [
      'a multicast or reserved IPv4 address',
      ['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '0.1.2.3'],
    ],
  ])('%s: %j', (_kind, hosts) => {
    for (const host of hosts) expect([host, judge(`http://${host}/`)]).toEqual([host, 'address']);
  });

  it('public neighbours of refused ranges pass, and IPv4 in NAT64 and mapped forms is judged as IPv4', () => {
    const hosts = [
      '8.8.8.8',
      '172.15.0.1',
      '172.32.0.1',
      '100.63.0.1',
      '100.128.0.1',
      '198.17.0.1',
      '198.20.0.1',
      '223.1.1.1',
      '11.0.0.1',
    ];
    hosts.push(
      '[2606:4700::1111]',
      '[2a00:1450::1]',
      '[::ffff:8.8.8.8]',
      '[64:ff9b::808:808]',
      'example.com',
      'localhost.example',
      'mylocalhost',
    );
    for (const host of hosts) expect([host, judge(`https://${host}/`)]).toEqual([host, undefined]);
  });

  it("the address of Azure's machine service is refused in every spelling, and as the address of a name", () => {
    for (const host of ['168.63.129.16', '2822734096', '[::ffff:168.63.129.16]', '[64:ff9b::a83f:8110]']) {
      expect([host, judge(`http://${host}/`)]).toEqual([host, 'address']);
    }
    expect(addressRules().addressProblem('168.63.129.16', 80)).toContain('may not be reached');
    expect(judge('http://168.63.129.16/', ['168.63.129.16'])).toBeUndefined();
    for (const host of ['168.63.129.15', '168.63.129.17']) expect(judge(`http://${host}/`)).toBeUndefined();
  });

  it('an IPv6 address that contains an IPv4 one (ISATAP) is refused if that one is', () => {
    const hosts = [
      '[2600::5efe:7f00:1]',
      '[2600::200:5efe:a00:1]',
      '[2600:1:2:3:0:5efe:a83f:8110]',
      '[fe80::5efe:808:808]',
    ];
    for (const host of hosts) expect([host, judge(`http://${host}/`)]).toEqual([host, 'address']);
    for (const host of ['[2600::5efe:808:808]', '[2600::1:5efe:7f00:1]'])
      expect([host, judge(`http://${host}/`)]).toEqual([host, undefined]);
  });

  it("every client refuses the names of this machine's hosts file", () => {
    for (const host of [
      'localhost4',
      'localhost6',
      'LOCALHOST6.',
      'localhost4.localdomain4',
      'localhost6.localdomain6',
    ]) {
      expect([host, judge(`http://${host}/`)]).toEqual([host, 'address']);
    }
  });

  it('if the addresses of names are not checked, names of private networks are refused unless allowed', () => {
    const names = [
      'redis',
      'db:5432',
      'vm.',
      'kubernetes.default.svc',
      'api.default.svc.cluster.local',
      'host.docker.internal',
    ];
    names.push('metadata.azure.internal', 'printer.local', 'nas.home.arpa', 'Db.INTERNAL.');
    for (const name of names) {
      expect([name, judge(`http://${name}/`, [], true)]).toEqual([name, 'address']);
      expect([name, judge(`http://${name}/`)]).toEqual([name, undefined]);
    }
    for (const name of ['shop.example', 'internal.example', 'local.example', 'my.locals']) {
      expect([name, judge(`http://${name}/`, [], true)]).toEqual([name, undefined]);
    }
    expect(judge('http://redis:6379/', ['redis'], true)).toBeUndefined();
    expect(judge('http://api.default.svc/', ['*.default.svc'], true)).toBeUndefined();
    expect(judge('http://api.other.svc/', ['*.default.svc'], true)).toBe('address');
  });

  it('ports 80, 443 and from 1024 on pass; others only on an allowed host', () => {
    const verdicts = [22, 25, 80, 443, 1023, 1024, 65535].map((port) => judge(`http://example.com:${port}/`));
    expect(verdicts).toEqual(['address', 'address', undefined, undefined, 'address', undefined, undefined]);
    expect(judge('http://example.com:25/', ['example.com'])).toBeUndefined();
    expect(judge('http://example.com:25/', ['other.example'])).toBe('address');
  });
});

describe('the allow list', () => {
  it('that is no list is refused with an example', () => {
    expect(() => addressRules('localhost:3000' as never)).toThrow("`allow` must be a list, such as ['localhost:3000'");
  });

  it.each([
    [
      '127.0.0.0/8',
      ['127.0.0.1', '127.9.9.9', '2130706433', '[::ffff:127.0.0.1]'],
      ['10.0.0.1', '[::1]', 'localhost', '128.0.0.0:22'],
    ],
    ['127.0.0.1/8', ['127.9.9.9'], ['126.0.0.1:22']],
    ['fd00::/8', ['[fd00::1]', '[fdff::1]'], ['[fc00::1]', '[fe80::1]']],
    ['0.0.0.0/0', ['10.0.0.1', '169.254.169.254', '[::ffff:10.0.0.1]'], ['[::1]', 'localhost']],
    ['::1', ['[::1]', '[::1]:22'], ['[::2]']],
    ['[::1]:8080', ['[::1]:8080'], ['[::1]', '[::1]:8081']],
    ['10.0.0.7', ['10.0.0.7', '10.0.0.7:22'], ['10.0.0.8']],
    ['10.0.0.7:80', ['10.0.0.7'], ['10.0.0.7:81']],
    ['::ffff:10.0.0.7', ['10.0.0.7', '[::ffff:a00:7]'], ['10.0.0.8']],
    ['localhost', ['localhost', 'LOCALHOST.', 'localhost:22'], ['a.localhost', '127.0.0.1']],
    ['Localhost:3000', ['localhost:3000'], ['localhost', 'localhost:3001']],
    ['*.localhost', ['a.localhost', 'a.b.localhost'], ['localhost']],
    ['*.localhost:3000', ['a.localhost:3000'], ['a.localhost:3001']],
  ])('%s allows %j and none of %j', (entry, admitted, refused) => {
    for (const host of admitted) expect([host, judge(`http://${host}/`, [entry])]).toEqual([host, undefined]);
    for (const host of refused) expect([host, judge(`http://${host}/`, [entry])]).toEqual([host, 'address']);
  });

  it('names are compared as parsed hosts, on label boundaries', () => {
    const rules = addressRules(['*.a.com', 'b.com']);
    const allowed = (url: string) => rules.allowsHost(new URL(url).hostname, 80);
    expect(allowed('http://x.a.com/')).toBe(true);
    expect(allowed('http://X.A.COM./')).toBe(true);
    const strangers = [
      'http://evila.com/',
      'http://a.com/',
      'http://a.com.evil/',
      'http://x.a.com.evil/',
      'http://evilb.com/',
      'http://x.b.com/',
    ];
    for (const url of [...strangers, 'http://evil/?.a.com', 'http://evil/#b.com', 'http://evil/x.a.com'])
      expect([url, allowed(url)]).toEqual([url, false]);
    // For the URL parser, the backslash is a slash: the host is the part before it.
    expect(new URL('http://evil.example\\@b.com').hostname).toBe('evil.example');
    expect(allowed('http://evil.example\\@b.com')).toBe(false);
  });

  it.each([
    '',
    '*',
    '*.',
    '*.10.0.0.1',
    '10.0.0.0/33',
    '10.0.0/8',
    'http://a.com',
    'a.com/x',
    'a b',
    'user@a.com',
    'a.com:0',
    'a.com:70000',
    '::ffff:0:0/96',
    'a?b',
    '.',
  ])('refuses the entry %j with what to write instead', (entry) =>
    expect(() => addressRules([entry])).toThrow(/allow entry .* write '10\.0\.0\.0\/8'/),
  );
});

describe('the addresses of a name', () => {
  it('are each checked with the allow list', () => {
    const rules = addressRules(['10.1.0.0/16']);
    expect(rules.addressProblem('93.184.216.34', 80)).toBeUndefined();
    expect(rules.addressProblem('10.1.2.3', 80)).toBeUndefined();
    for (const address of ['10.2.0.1', '::1', 'fe80::1%eth0', '::ffff:127.0.0.1', '127.0.0.1', 'nonsense', '']) {
      expect([address, rules.addressProblem(address, 80)]).toEqual([address, expect.stringContaining('resolves to')]);
    }
  });
});

describe('a request', () => {
  const rules = addressRules();
  const admit = (request: object) => admitRequest({ method: 'GET', url: 'https://a.example/', ...request }, rules);

  it.each([
    'ftp://a.example/',
    'file:///etc/passwd',
    'data:,x',
    'blob:https://a.example/1',
    'javascript:1',
    'a.example',
    '//a.example/',
    'http://',
    '',
  ])('%j is refused', (url) =>
    expect(() => admit({ url })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', retryable: false, details: { reason: 'url' } }),
    ),
  );

  it('user info is refused, and not printed', () => {
    for (const url of ['http://planted:secret@a.example/', 'http://planted@a.example/', 'http://:secret@a.example/']) {
      expect(() => admit({ url })).toThrow(/^the url of a\.example holds a user name or password/);
    }
  });

  it('a line break in the url is refused, not dropped', () => {
    expect(() => admit({ url: 'https://a.exa\r\nmple/' })).toThrow('control character at 13');
    expect(() => admit({ url: 'https://a.example/\n' })).toThrow('control character');
  });

  it('a very long url and very long headers are refused', () => {
    expect(() => admit({ url: `https://a.example/?${'a=1&'.repeat(100_000)}` })).toThrow(
      'longer than 65536 characters',
    );
    const headers = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`x-${i}`, '1']));
    expect(() => admit({ headers })).toThrow('longer than 65536 characters together');
  });

  it.each(['CONNECT', 'trace', 'TRACK', 'GE T', 'GET\r\n', '', 'É'])('method %j is refused', (method) => {
    expect(() => admit({ method })).toThrow(expect.objectContaining({ details: { reason: 'method' } }));
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a timeout and a limit of %d are refused', (value) => {
    expect(() => admit({ timeoutMs: value })).toThrow(`timeoutMs is ${value}`);
    expect(() => admit({ maxResponseBytes: value })).toThrow(`maxResponseBytes is ${value}`);
  });

  it('a timeout that is too long for a timer is reduced to the longest one, and does not fire at once', () => {
    expect(admit({ timeoutMs: 1e12 }).timeoutMs).toBe(2 ** 31 - 1);
    expect(admit({}).timeoutMs).toBe(30_000);
    expect(admit({}).maxResponseBytes).toBe(10 * 1024 * 1024);
  });

  it('is named without its query; a long path is not cut, because messages are masked before they are cut', () => {
    expect(admit({ url: 'https://a.example:8443/p/q?token=planted#x' }).label).toBe('GET https://a.example:8443/p/q');
    const path = `/${'x'.repeat(5_000)}`;
    expect(admit({ url: `https://a.example${path}` }).label).toBe(`GET https://a.example${path}`);
  });
});

describe('addresses are read and judged as ipaddr.js does', () => {
  /** The first and the last address of each special range, the neighbours of both, and some at random. */
  function addresses(kind: 'ipv4' | 'ipv6'): string[] {
    const type = kind === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6;
    const bits = kind === 'ipv4' ? 32n : 128n;
    const ranges = (type.prototype as unknown as { SpecialRanges: Record<string, unknown[]> }).SpecialRanges;
    const pairs = Object.values(ranges).flatMap((list) => (Array.isArray(list[0]) ? list : [list]));
    const edges = (pairs as [{ toByteArray(): number[] }, number][]).flatMap(([network, length]) => {
      const first = network.toByteArray().reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
      const last = first + (1n << (bits - BigInt(length))) - 1n;
      return [first - 1n, first, first + 1n, last - 1n, last, last + 1n];
    });
    const random = Array.from({ length: 500 }, (_, i) => BigInt(`0x${sha256(String(i)).slice(0, Number(bits) / 4)}`));
    return [...edges, ...random]
      .filter((value) => value >= 0n && value < 1n << bits)
      .map((value) => {
        const bytes = Array.from({ length: Number(bits) / 8 }, (_, i) =>
          Number((value >> (bits - 8n * BigInt(i + 1))) & 255n),
        );
        return ipaddr.fromByteArray(bytes).toString();
      });
  }
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

  it.each(['ipv4', 'ipv6'] as const)('%s', (kind) => {
    for (const text of addresses(kind)) {
      const expected = ipaddr.parse(text);
      const forms =
        expected instanceof ipaddr.IPv6
          ? [text, expected.toNormalizedString(), `${text}%eth0`, text.toUpperCase()]
          : [text];
      for (const form of forms) {
        const address = parseAddress(form);
        expect(address && [form, specialRange(address) ?? 'unicast']).toEqual([form, expected.range()]);
        expect(address?.flatMap((word) => [word >> 8, word & 255])).toEqual(expected.toByteArray());
      }
    }
  });

  it('other texts are not addresses', () => {
    const texts = [
      '',
      '1',
      '1.2.3',
      '1.2.3.4.',
      '1.2.3.256',
      '01.2.3.4',
      '0x1.2.3.4',
      '1.2.3.4%eth0',
      ' 1.2.3.4',
      '1:2:3:4:5:6:7',
    ];
    const words = [
      ':::',
      '1::2::3',
      '12345::',
      '::1.2.3',
      '::1.2.3.256',
      'g::',
      '[::1]',
      '::1%',
      '::1/64',
      '::1]@x',
      '1:2:3:4:5:6:7:8:9',
    ];
    for (const text of [...texts, ...words]) expect([text, parseAddress(text)]).toEqual([text, undefined]);
    expect(parseAddress('::ffff:127.0.0.1')).toEqual(parseAddress('::ffff:7f00:1'));
  });
});
