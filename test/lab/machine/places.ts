import { homedir } from 'node:os';
import { join } from 'node:path';

/** The directories of a machine on this host: all below `plumbline/lab` in the user's cache directory. */
export type Places = Readonly<ReturnType<typeof placesOf>>;

/** @param index of the machine: the others of a run are next to the first, and share what is kept between runs */
export function placesOf(env: NodeJS.ProcessEnv, index = 0) {
  const home = join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'plumbline', 'lab');
  const run = join(home, 'run', ...(index === 0 ? [] : [String(index)]));
  return {
    home,
    /** The guest's root file system, kernel and initramfs, created from Debian packages and kept between runs. */
    disk: join(home, 'disk.img'),
    kernel: join(home, 'vmlinuz'),
    initramfs: join(home, 'initramfs.gz'),
    /** The guest's own, static. */
    busybox: join(home, 'busybox'),
    /** The inputs of these. */
    stamp: join(home, 'made-from'),
    run,
    /** The second disk: the lab's own programs, files and identity. */
    parts: join(run, 'parts.img'),
    /** The output of the guest's kernel and systemd. */
    serialLog: join(run, 'serial.log'),
    key: join(run, 'id'),
    knownHosts: join(run, 'known_hosts'),
    sshSocket: join(run, 'ssh.socket'),
    running: join(run, 'running.json'),
  };
}
