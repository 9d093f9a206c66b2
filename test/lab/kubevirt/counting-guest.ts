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

/** Its file. */
export function countingKernel(): Buffer {
  const kernel = Buffer.alloc(3 * SECTOR);
  kernel[SETUP_SECTORS] = 1;
  const bytes = SETUP.split('\n').flatMap(
    (line) => /^ {2}((?:[0-9a-f]{2} ?)+)(?: |$)/.exec(line)?.[1]?.trim().split(' ') ?? [],
  );
  Buffer.from(bytes.join(''), 'hex').copy(kernel, SECTOR);
  return kernel;
}

/** The counts on its console, in the order of their lines. */
export function countsOf(console: string): readonly number[] {
  return [...console.matchAll(/tick ([0-9A-F]{4})/g)].map(([, count = '']) => Number.parseInt(count, 16));
}
