import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where the machine's parts are on this one: all below `plumbline/lab` in the user's cache directory. */
export interface Places {
  readonly home: string;
  /** The guest's root file system, kernel and initramfs, made of Debian packages and kept from run to run. */
  readonly disk: string;
  readonly kernel: string;
  readonly initramfs: string;
  /** The guest's own, static. */
  readonly busybox: string;
  /** What these were made from. */
  readonly stamp: string;
  /** What one run makes. */
  readonly run: string;
  /** The second disk: the lab's own programs, files and identity. */
  readonly parts: string;
  /** What the guest's kernel and systemd print. */
  readonly serialLog: string;
  readonly key: string;
  readonly knownHosts: string;
  readonly sshSocket: string;
  /** Says who runs a machine, and how it is reached. */
  readonly running: string;
}

export function placesOf(env: NodeJS.ProcessEnv): Places {
  const home = join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'plumbline', 'lab');
  const run = join(home, 'run');
  return {
    home,
    disk: join(home, 'disk.img'),
    kernel: join(home, 'vmlinuz'),
    initramfs: join(home, 'initramfs.gz'),
    busybox: join(home, 'busybox'),
    stamp: join(home, 'made-from'),
    run,
    parts: join(run, 'parts.img'),
    serialLog: join(run, 'serial.log'),
    key: join(run, 'id'),
    knownHosts: join(run, 'known_hosts'),
    sshSocket: join(run, 'ssh.socket'),
    running: join(run, 'running.json'),
  };
}
