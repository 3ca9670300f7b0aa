/** The rules for outbound HTTP headers. Operations check them at load, and HTTP clients check them before each request. */

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

// Headers that frame the message or belong to the connection. A caller that sets these could smuggle a second request.
const CONNECTION_OWNED: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Why a header can't be sent, or undefined if it can. The text never contains the value, because the value may be a secret.
 *
 * @param name - in any case
 * @param value - as it would be sent
 */
export function headerProblem(name: string, value: string): string | undefined {
  if (!NAME.test(name)) {
    return `header name ${JSON.stringify(name.slice(0, 40))} is not a token (letters, digits and !#$%&'*+.^_\`|~- only, at most 128)`;
  }
  if (CONNECTION_OWNED.has(name.toLowerCase())) return `header ${name} is set by the HTTP client alone; leave it out`;
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) {
      return `header ${name} holds a control character at ${i} (a line break would begin another header); remove it`;
    }
    if (code > 0xff) {
      return `header ${name} holds a character at ${i} that headers can't carry (past U+00FF); encode it, for instance with urlEncode()`;
    }
  }
  return undefined;
}
