import { execute } from './commands.ts';
import type { Places } from './places.ts';

/** The guest's name in the file of known hosts, with any port. */
export const HOST_ALIAS = 'plumbline-lab';

/** The guest's command line. */
export interface Shell {
  /** Runs a shell command line as root; returns its output. @throws Error if it fails */
  run(line: string, input?: string | Buffer): Promise<string>;
  /** The arguments of ssh, for users. */
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
