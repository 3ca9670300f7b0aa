/**
 * Which process this is, and whether another one of the same machine is gone or lives: read from Linux's `/proc` where the
 * runtime can. A process that is started again at once need not wait until the lock of the one before has been free for long,
 * and one that lost nothing but its connection is not taken for dead by its neighbours.
 *
 * A process is named by its machine's boot, its process namespace (containers of one machine have one each), its number there,
 * and the instant at which it began: the number alone is given to another process later.
 */

export interface Processes {
  /** Names this process, and no other that ever ran anywhere; undefined where that can't be known. */
  readonly own: string | undefined;
  /** Whether the process of that name is gone or lives; undefined where that can't be known. */
  look(name: string): 'gone' | 'alive' | undefined;
}

/** What is used of Node.js and of those that look like it. */
interface Host {
  readonly pid: number;
  readonly versions?: { readonly deno?: string };
  kill(pid: number, signal: 0): unknown;
  getBuiltinModule?(name: 'node:fs'): Files | undefined;
}

interface Files {
  readFileSync(path: string, encoding: 'utf8'): string;
  readlinkSync(path: string): string;
}

const UNKNOWN: Processes = { own: undefined, look: () => undefined };

/** @param host - the runtime's `process` */
export function readProcesses(host = (globalThis as { readonly process?: Host }).process): Processes {
  // Deno asks its user before it reads a file.
  if (!host?.getBuiltinModule || host.versions?.deno !== undefined) return UNKNOWN;
  try {
    const files = host.getBuiltinModule('node:fs');
    if (!files) return UNKNOWN;
    const boot = files.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const here = `${boot} ${files.readlinkSync('/proc/self/ns/pid')}`;
    const self = readStat(files, 'self');
    // Where `/proc` is another namespace's, its numbers are not those of `kill`.
    if (self?.pid !== host.pid || boot === '') return UNKNOWN;
    const look = (name: string) => {
      const [, machine, pid, began] = /^(.*) (\d+) (\d+)$/.exec(name) ?? [];
      if (machine !== here) return undefined;
      if (!exists(host, Number(pid))) return 'gone';
      const stat = readStat(files, pid as string);
      if (!stat) return undefined;
      return stat.began !== began || stat.hasEnded ? 'gone' : 'alive';
    };
    return { own: `${here} ${self.pid} ${self.began}`, look };
  } catch {
    return UNKNOWN;
  }
}

/** @returns true also when it isn't known */
function exists(host: Host, pid: number): boolean {
  try {
    host.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { readonly code?: string }).code !== 'ESRCH';
  }
}

/** @returns undefined when it can't be read: others' processes may be hidden */
function readStat(files: Files, process: string) {
  try {
    const text = files.readFileSync(`/proc/${process}/stat`, 'utf8');
    // The program's name stands in parentheses, and may hold anything.
    const [state = '', ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const began = rest[18];
    if (began === undefined) return undefined;
    // A zombie has ended, and waits for its parent to hear of it.
    return { pid: Number.parseInt(text, 10), began, hasEnded: /[ZX]/i.test(state) };
  } catch {
    return undefined;
  }
}
