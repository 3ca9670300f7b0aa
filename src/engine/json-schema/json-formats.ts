/** The formats of JSON Schema that are checked. Each check takes a time that is linear in the length of the text. */

type IsFormat = (text: string) => boolean;

const matches =
  (pattern: RegExp): IsFormat =>
  (text) =>
    pattern.test(text);

const isTime = matches(/^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i);
const isIPv4 = matches(/^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/);
const isUuid = matches(
  /^(?:[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}|0{8}-(?:0{4}-){3}0{12}|f{8}-(?:f{4}-){3}f{12})$/i,
);

function isDate(text: string): boolean {
  const [, year = '', month = '', day = ''] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  // The calendar repeats after 400 years, and `Date.UTC` reads a year below 100 as another one.
  const days = new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate();
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= days;
}

function isIPv6(text: string): boolean {
  return text.length <= 45 && /^[\da-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]`);
}

function isRange(isAddress: IsFormat, maxBits: number): IsFormat {
  return (text) => {
    const [address = '', bits = '', ...more] = text.split('/', 3);
    return isAddress(address) && /^(?:0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= maxBits && more.length === 0;
  };
}

/** By name. JSON Schema takes any other format as a note for readers. */
export const FORMATS: Readonly<Record<string, IsFormat>> = {
  date: isDate,
  'date-time': (text) => /^t$/i.test(text[10] ?? '') && isDate(text.slice(0, 10)) && isTime(text.slice(11)),
  time: isTime,
  duration: matches(
    /^P(?:\d+W|(?=\d|T)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d+)?S)?)?)$/,
  ),
  email: matches(
    /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*(?<!')@(?:[A-Za-z\d][A-Za-z\d-]*\.)+[A-Za-z]{2,}$/,
  ),
  hostname: matches(/^(?=.{1,253}\.?$)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*\.?$/i),
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isRange(isIPv4, 32),
  'cidr-v6': isRange(isIPv6, 128),
  uri: (text) => URL.canParse(text),
  'uri-reference': (text) => URL.canParse(text, 'http://a'),
  uuid: isUuid,
  guid: isUuid,
  base64: (text) => text.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(text),
  base64url: (text) => text.length % 4 !== 1 && /^[\w-]*$/.test(text),
  cuid: matches(/^c[\da-z]{6,}$/i),
  cuid2: matches(/^[\da-z]+$/),
  e164: matches(/^\+[1-9]\d{6,14}$/),
  ksuid: matches(/^[A-Za-z\d]{27}$/),
  mac: matches(/^(?:[\dA-F]{2}:){5}[\dA-F]{2}$|^(?:[\da-f]{2}:){5}[\da-f]{2}$/),
  nanoid: matches(/^[\w-]{21}$/),
  ulid: matches(/^[0-7][\dA-HJKMNP-TV-Z]{25}$/i),
  xid: matches(/^[\da-v]{20}$/i),
};
