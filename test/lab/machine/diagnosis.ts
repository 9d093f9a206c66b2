import { readFile } from 'node:fs/promises';
import type { Program } from '../../support/processes.ts';
import { CommandError, execute } from './commands.ts';
import type { Places } from './places.ts';

export const HOST_ALIAS = 'plumbline-lab';

export interface Shell {
  /** Runs a shell command line as root; returns its output. @throws Error if it fails */
  run(line: string, input?: string | Buffer): Promise<string>;
  readonly arguments: readonly string[];
}

export function createShell(places: Places, port: number): Shell {
  const reach = [
    ...['-p', String(port), '-l', 'root', '-i', places.key, '-o', 'BatchMode=yes', '-o', 'LogLevel=ERROR'],
    ...['-o', `UserKnownHostsFile=${places.knownHosts}`, '-o', `HostKeyAlias=${HOST_ALIAS}`, '-F', 'none'],
  ];
  // One shared connection: a new one takes the guest a second.
  const shared = ['-o', 'ControlMaster=auto', '-o', `ControlPath=${places.sshSocket}`, '-o', 'ControlPersist=60'];
  const limits = ['-o', 'ConnectTimeout=20', '-o', 'ServerAliveInterval=20', '-o', 'ServerAliveCountMax=6'];
  return {
    run: (line, input) =>
      execute('ssh', [...reach, ...shared, ...limits, '127.0.0.1', '--', line], { input: input ?? '' }),
    arguments: [...reach, '127.0.0.1'],
  };
}

const LOOK = [
  'systemctl is-system-running',
  'systemctl list-jobs --no-legend',
  'systemctl --failed --no-legend',
  'for unit in $(systemctl --failed --no-legend --plain | cut -d" " -f1) kubelet; do journalctl --no-pager -n 8 -u "$unit"; done',
  'cat /proc/loadavg',
].join('; ');
const SERIAL_LINES = 25;
const QEMU_LINES = 15;
/** The exit status of ssh if it does not reach the guest, or loses it. */
const NO_CONNECTION = 255;

export interface Traces {
  readonly qemu: Pick<Program, 'ended' | 'logFile'>;
  readonly serialLog: string;
}

export async function whyNotReady(shell: Shell, traces: Traces): Promise<string> {
  return shell.run(`(${LOOK}) 2>&1; true`).catch(() => lastWords(traces));
}

/** Whether QEMU still runs or how it ended, the end of its output, and the end of the guest's output. */
export async function lastWords({ qemu, serialLog }: Traces): Promise<string> {
  const state = qemu.ended === undefined ? 'QEMU runs' : `QEMU ended with ${qemu.ended}`;
  return [state, await endOf(qemu.logFile, QEMU_LINES), await endOf(serialLog, SERIAL_LINES)].join('\n');
}

/** The same shell, which adds the diagnosis if it does not reach the guest. */
export function explaining(shell: Shell, traces: Traces): Shell {
  return {
    ...shell,
    run: (line, input) =>
      shell.run(line, input).catch(async (error: Error) => {
        if (!(error instanceof CommandError) || error.status !== NO_CONNECTION) throw error;
        throw new Error(`${error.message}\n${await lastWords(traces)}`, { cause: error });
      }),
  };
}

async function endOf(file: string, lines: number): Promise<string> {
  const text = (await readFile(file, 'utf8').catch(() => '')).trimEnd();
  if (text === '') return `${file} is empty`;
  return `the end of ${file}:\n${text.split('\n').slice(-lines).join('\n')}`;
}
