import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDirectories } from '../../support/files.ts';
import { needs, pathOf } from '../../support/parts.ts';

/**
 * A boot sector that writes the low half of the BIOS's tick count, which begins at midnight, to the debug console, and resets
 * the machine:
 *
 *     xor ax,ax; mov ds,ax; mov al,[046Ch]; out 0E9h,al; mov al,[046Dh]; out 0E9h,al; mov dx,0CF9h; mov al,6; out dx,al; hlt
 */
const BOOT_SECTOR = Buffer.from('31c08ed8a06c04e6e9a06d04e6e9baf90cb006eef4ebfd', 'hex');
const TICKS_PER_SECOND = 18.2065;
const BYTES_PER_BOOT = 2;

/** KubeVirt's command line for a VM with startStrategy Paused (converter/compute/os.go), as libvirt writes it. */
const PAUSED_START = ['-boot', 'menu=on,splash-time=10000,strict=on'];

/**
 * The guest's own seconds from power on, and from its reset, until it runs what is on its disk. Its clock follows the
 * instructions that are executed (-icount), so that the speed of this machine does not matter.
 */
async function bootTimes(directory: string, flags: readonly string[]): Promise<number[]> {
  const disk = join(directory, 'disk');
  const console = join(directory, 'console');
  const image = Buffer.alloc(1024 * 1024);
  BOOT_SECTOR.copy(image);
  image.writeUInt16LE(0xaa55, 510);
  writeFileSync(disk, image);
  const machine = ['-machine', 'q35', '-accel', 'tcg', '-m', '32', '-nodefaults', '-display', 'none'];
  const time = ['-icount', 'shift=0,sleep=off', '-rtc', 'base=2026-01-01T00:00:00,clock=vm'];
  const drive = ['-drive', `file=${disk},format=raw,if=none,id=disk`, '-device', 'ide-hd,drive=disk,bootindex=1'];
  const debug = ['-chardev', `file,id=console,path=${console}`, '-device', 'isa-debugcon,iobase=0xe9,chardev=console'];
  const qemu = spawn(pathOf('qemu'), [...machine, ...time, ...drive, ...debug, ...flags], { stdio: 'ignore' });
  const exited = once(qemu, 'exit');
  try {
    const said = () => (existsSync(console) ? readFileSync(console) : Buffer.alloc(0));
    while (said().length < 2 * BYTES_PER_BOOT && qemu.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const [first = 0, second = 0] = [0, BYTES_PER_BOOT].map((at) => said().readUInt16LE(at) / TICKS_PER_SECOND);
    return [first, second - first];
  } finally {
    qemu.kill('SIGKILL');
    await exited;
  }
}

describe('the cost of KubeVirt’s paused start for a guest', function () {
  needs('linux');
  needs('qemu');
  this.timeout(300_000);
  const temp = tempDirectories();

  it('a paused start shows a boot menu for ten seconds, at the start and at a reboot of the guest', async () => {
    for (const seconds of await bootTimes(temp(), PAUSED_START)) {
      assert.ok(seconds > 9.9 && seconds < 11, `${seconds} s`);
    }
  });

  it('an ordinary start shows no boot menu', async () => {
    for (const seconds of await bootTimes(temp(), ['-boot', 'strict=on'])) {
      assert.ok(seconds >= 0 && seconds < 1, `${seconds} s`);
    }
  });
});
