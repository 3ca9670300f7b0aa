/** A mail server on loopback that keeps to the protocol, except at one command. */

import { type AddressInfo, createServer, type Socket } from 'node:net';

/** Where the server misbehaves. `content`: after the last line of the mail. `middle`: after its first part. */
export type Stage = 'banner' | 'EHLO' | 'STARTTLS' | 'AUTH' | 'MAIL' | 'RCPT' | 'DATA' | 'middle' | 'content' | 'RSET';
/** An answer such as `450 later`, no answer at all, or the end of the connection. */
export type Fault = string | 'silent' | 'lost';

export interface ScriptedServer {
  readonly port: number;
  /** All commands, without the content of mails. */
  readonly commands: readonly string[];
  /** The contents of the mails that were complete. */
  readonly mails: readonly string[];
  readonly open: number;
  close(): Promise<void>;
}

const USUAL: Readonly<Record<string, string>> = {
  banner: '220 ready',
  EHLO: '250-here\r\n250-PIPELINING\r\n250-SIZE 100000\r\n250 AUTH PLAIN',
  STARTTLS: '502 no TLS here',
  AUTH: '235 welcome',
  MAIL: '250 ok',
  RCPT: '250 ok',
  DATA: '354 go on',
  content: '250 taken',
  RSET: '250 ok',
  QUIT: '221 bye',
};

/**
 * @param faults - for each stage, a fault, or a list of answers that it gives in turn
 * @param ehlo - its extensions. Default: PIPELINING, SIZE 100000 and AUTH PLAIN
 */
export async function scriptedServer(
  faults: Partial<Record<Stage, Fault | readonly Fault[]>>,
  ehlo: string = USUAL.EHLO as string,
): Promise<ScriptedServer> {
  const commands: string[] = [];
  const mails: string[] = [];
  const sockets = new Set<Socket>();
  const counts = new Map<string, number>();
  const react = (socket: Socket, stage: string, usual = USUAL[stage] ?? '500 what?'): string => {
    const given = faults[stage as Stage];
    const at = counts.get(stage) ?? 0;
    counts.set(stage, at + 1);
    const fault = (Array.isArray(given) ? given[at] : given) ?? usual;
    if (fault === 'lost') socket.destroy();
    else if (fault !== 'silent') socket.write(`${fault}\r\n`);
    return fault;
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    let rest = '';
    let inContent = false;
    let isAccepted = false;
    const readContent = () => {
      if (faults.middle) return void react(socket, 'middle');
      const end = rest.indexOf('\r\n.\r\n');
      if (end < 0) return;
      mails.push(rest.slice(0, end));
      rest = rest.slice(end + 5);
      isAccepted = false;
      inContent = false;
      react(socket, 'content');
    };
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1');
      for (;;) {
        if (inContent) return readContent();
        const end = rest.indexOf('\r\n');
        if (end < 0 || socket.destroyed) return;
        const command = rest.slice(0, end);
        rest = rest.slice(end + 2);
        commands.push(command);
        // A client that got an error to EHLO tries HELO.
        const stage = (command.split(/[ :]/)[0] as string).toUpperCase().replace(/^HELO$/, 'EHLO');
        const usual = stage === 'EHLO' ? ehlo : stage === 'DATA' && !isAccepted ? '503 no recipients' : USUAL[stage];
        const answer = react(socket, stage, usual);
        if (stage === 'RCPT' && answer.startsWith('250')) isAccepted = true;
        inContent = answer.startsWith('354');
      }
    });
    react(socket, 'banner');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    commands,
    mails,
    get open() {
      return sockets.size;
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
