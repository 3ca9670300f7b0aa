/**
 * Names this process, and checks whether another process of the same machine lives, by Linux's `/proc` where the
 * runtime can read it. So a restarted process need not wait until the lock of its predecessor has been free for the
 * grace period. And a process that lost only its connection is not considered dead by other processes of its machine.
 *
 * The name consists of the machine's boot, the process namespace (each container has its own), the process id in it,
 * and the start time: a process id alone is reused later.
 */

export interface Processes {
  /** The unique name of this process; undefined where it can't be determined. */
  readonly own: string | undefined;
  /** Whether the process of this name lives; undefined where it can't be determined. */
  look(name: string): 'gone' | 'alive' | undefined;
}

/** What is used of Node.js, or of a compatible runtime. */
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
  // Deno asks the user before it reads a file.
  if (!host?.getBuiltinModule || host.versions?.deno !== undefined) return UNKNOWN;
  try {
    const files = host.getBuiltinModule('node:fs');
    if (!files) return UNKNOWN;
    const boot = files.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const here = `${boot} ${files.readlinkSync('/proc/self/ns/pid')}`;
    const self = readStat(files, 'self');
    // If `/proc` belongs to another namespace, its process ids are not those of `kill`.
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

/** @returns true also when it can't be determined */
function exists(host: Host, pid: number): boolean {
  try {
    host.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { readonly code?: string }).code !== 'ESRCH';
  }
}

/** @returns undefined when it can't be read: processes of other users may be hidden */
function readStat(files: Files, process: string) {
  try {
    const text = files.readFileSync(`/proc/${process}/stat`, 'utf8');
    // The program's name is in parentheses, and may contain any character.
    const [state = '', ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const began = rest[18];
    if (began === undefined) return undefined;
    // A zombie has ended; its parent has not collected it yet.
    return { pid: Number.parseInt(text, 10), began, hasEnded: /[ZX]/i.test(state) };
  } catch {
    return undefined;
  }
}
