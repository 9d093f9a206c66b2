import { chmod, copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execute } from '../machine/commands.ts';

export const GUEST_IS_UP = 'the guest of the lab is up';

const INIT = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
echo "${GUEST_IS_UP}: $(/bin/busybox grep -c ^processor /proc/cpuinfo) CPUs"
while :; do /bin/busybox sleep 3600; done
`;

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

/**
 * A guest of 145 bytes that counts the seconds since its start on its serial console, so that a migration shows: the
 * count continues. It rewrites 448 KiB of memory 18 times a second, more than a migration at 1 MiB/s can ever finish. An
 * emulation in an emulation boots it in seconds, while a kernel takes minutes.
 */

/** In the form of Linux: a boot sector, one sector of setup that QEMU runs in real mode, and a kernel, here empty. */
const SECTOR = 512;
const SETUP_SECTORS = 0x1f1;

const SETUP = `
  eb 2e                 jump to 0x30
  48 64 72 53 00 02     "HdrS", boot protocol 2.0
  00 00 00 00 00 00 00 00 00
  01                    the kernel is loaded high
  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
  fb                    30: interrupts on
  31 ed                 count = 0
  b9 12 00              33: for 18 ticks of the timer
  f4                    36: wait for the next
  b8 00 10              of each page from 0x10000
  8e c0 26 ff 06 00 00  3a: increment the first word
  05 00 01 3d 00 80     until 0x80000
  72 f1 e2 eb
  45                    count++
  be 8b 00              print the text at 8b
  2e ac 84 c0 74 05
  e8 22 00 eb f5
  b9 04 00 89 eb        5a: print four hexadecimal digits
  c1 c3 04 88 d8 24 0f
  04 30 3c 39 76 02 04 07
  e8 09 00 e2 ec
  b0 0a e8 02 00 eb b9  print a line feed, and back to 33
  88 c4                 7a: print a character, once the port is ready
  ba fd 03 ec a8 20 74 fb
  88 e0 ba f8 03 ee c3
  74 69 63 6b 20 00     8b: "tick "
`;

export function countingKernel(): Buffer {
  const kernel = Buffer.alloc(3 * SECTOR);
  kernel[SETUP_SECTORS] = 1;
  const bytes = SETUP.split('\n').flatMap(
    (line) => /^ {2}((?:[0-9a-f]{2} ?)+)(?: |$)/.exec(line)?.[1]?.trim().split(' ') ?? [],
  );
  Buffer.from(bytes.join(''), 'hex').copy(kernel, SECTOR);
  return kernel;
}

export function countsOf(console: string): readonly number[] {
  return [...console.matchAll(/tick ([0-9A-F]{4})/g)].map(([, count = '']) => Number.parseInt(count, 16));
}
