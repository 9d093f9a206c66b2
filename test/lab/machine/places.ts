import { homedir } from 'node:os';
import { join } from 'node:path';

/** The directories of a machine on this host: all below `plumbline/lab` in the user's cache directory. */
export interface Places {
  readonly home: string;
  /** The guest's root file system, kernel and initramfs, created from Debian packages and kept between runs. */
  readonly disk: string;
  readonly kernel: string;
  readonly initramfs: string;
  /** The guest's own, static. */
  readonly busybox: string;
  /** The inputs of these. */
  readonly stamp: string;
  /** The files of one run. */
  readonly run: string;
  /** The second disk: the lab's own programs, files and identity. */
  readonly parts: string;
  /** The output of the guest's kernel and systemd. */
  readonly serialLog: string;
  readonly key: string;
  readonly knownHosts: string;
  readonly sshSocket: string;
  /** The owner of a running machine, and how to reach it. */
  readonly running: string;
}

/** @param index of the machine: the others of a run are next to the first, and share what is kept between runs */
export function placesOf(env: NodeJS.ProcessEnv, index = 0): Places {
  const home = join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'plumbline', 'lab');
  const run = join(home, 'run', ...(index === 0 ? [] : [String(index)]));
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
