/** `ensemble listen`: a receiver on this machine, which prints each delivery and says whether its signature holds. */

import { startHttpServer } from '../service/http-server.ts';
import type { ServiceHost } from '../service/service.ts';
import { verifySignature } from '../start.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import { onInterrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { forTerminal, oneLine, printJson } from '../terminal/text.ts';

export interface ListenOptions {
  readonly port: string;
  readonly host: string;
  /** The name of a process variable. */
  readonly secretEnv?: string;
  readonly brand: string;
  readonly status: string;
  readonly json?: boolean;
}

const MAX_BODY_BYTES = 10 * 1024 * 1024;

export async function listen(
  options: ListenOptions,
  output: Output,
  { process }: Pick<ServiceHost, 'process'>,
): Promise<number> {
  const { secretEnv, brand, host } = options;
  const secret = secretEnv === undefined ? undefined : process.env[secretEnv];
  if (secretEnv !== undefined && !secret)
    throw wrongUsage(`the variable ${secretEnv} is not set; it must have the secret of the notification`);
  const port = readNumber(options.port, 'port', 0, 65_535);
  const status = readNumber(options.status, 'status', 200, 599);

  const print = async (headers: Headers, body: string) => {
    const prefix = `x-${brand.toLowerCase()}-`;
    const header = (name: string) => headers.get(prefix + name) ?? '';
    const signature =
      header('signature') === ''
        ? 'unsigned'
        : secret === undefined
          ? 'not checked'
          : (await verifySignature({ secret, headers, body, brand }))
            ? 'valid'
            : 'wrong';
    const [event, delivery, attempt] = ['event', 'delivery', 'delivery-attempt'].map(header);
    if (options.json) {
      output.print(`${JSON.stringify({ event, delivery, attempt: Number(attempt), signature, body })}\n`);
      return;
    }
    if (event === '' && delivery === '') output.say('a request without the headers of a delivery:\n');
    const line = oneLine(`${event}  attempt ${attempt}  ${delivery}  signature: ${signature}`);
    output.print(`${line}\n${forTerminal(pretty(body))}\n`);
  };

  const server = await startHttpServer({
    ...{ host, port, log: () => undefined },
    listener(request, response) {
      const parts: Buffer[] = [];
      let size = 0;
      request.on('data', (part: Buffer) => {
        size += part.length;
        if (size <= MAX_BODY_BYTES) parts.push(part);
      });
      request.on('end', () => {
        const headers = new Headers();
        for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value));
        const body = Buffer.concat(parts).toString('utf8');
        void print(headers, body).finally(() => response.writeHead(size > MAX_BODY_BYTES ? 413 : status).end());
      });
    },
  });
  output.say(`listening on ${server.url}; stop it with Ctrl-C\n`);
  const interrupt = await new Promise<ReturnType<typeof onInterrupt>>((resolve) => {
    const waiting = onInterrupt(process, () => resolve(waiting));
  });
  server.stop();
  await server.drain({ openMs: 1_000, graceMs: 1_000 });
  interrupt.release();
  return 0;
}

function pretty(body: string): string {
  try {
    return printJson(JSON.parse(body));
  } catch {
    return body;
  }
}

function readNumber(text: string, option: string, least: number, most: number): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw wrongUsage(`--${option} must be a whole number from ${least} to ${most}, not ${text}`);
}
