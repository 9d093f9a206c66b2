import { chmod, copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execute } from '../machine/commands.ts';

/** The guest's message on its serial console when its first program runs. */
export const GUEST_IS_UP = 'the guest of the lab is up';

const INIT = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
echo "${GUEST_IS_UP}: $(/bin/busybox grep -c ^processor /proc/cpuinfo) CPUs"
while :; do /bin/busybox sleep 3600; done
`;

/** Packs an initramfs whose only program prints that it runs, and waits. */
export async function packInit(busybox: string, target: string): Promise<void> {
  const directory = `${target}.d`;
  for (const name of ['bin', 'dev', 'proc']) await mkdir(join(directory, name), { recursive: true });
  await copyFile(busybox, join(directory, 'bin/busybox'));
  await chmod(join(directory, 'bin/busybox'), 0o755);
  // The kernel opens it for the first program before any mount.
  await execute('mknod', [join(directory, 'dev/console'), 'c', '5', '1']);
  await writeFile(join(directory, 'init'), INIT, { mode: 0o755 });
  await execute('sh', ['-c', 'find . | cpio --quiet -o -H newc | gzip -1 >"$1"', 'sh', target], { cwd: directory });
  await rm(directory, { recursive: true });
}
