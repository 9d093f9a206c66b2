import { chmod, copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execute } from './commands.ts';
import { filesOf } from './kernel-modules.ts';

/** Seconds within which the disks must appear. */
const DISKS = 60;

/**
 * The first process: mounts the disk, adds the lab's own files from the second disk, and starts systemd.
 * @param modules file names, in the order of loading
 */
export function initScript(modules: readonly string[]): string {
  return `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
${modules.map((file) => `insmod /modules/${file}`).join('\n')}
waited=0
while [ ! -b /dev/vdb ] && [ $waited -lt ${DISKS * 10} ]; do sleep 0.1; waited=$((waited + 1)); done
mount -t ext4 -o noatime /dev/vda /root || exec sh
mkdir -p /root/opt/lab
mount -t ext4 -o ro /dev/vdb /root/opt/lab || exec sh
cp -a /root/opt/lab/over/. /root/
mount --move /dev /root/dev
umount /sys /proc
exec switch_root /root /sbin/init
`;
}

/** Packs it with the guest's own busybox. */
export async function packInitramfs(
  root: string,
  version: string,
  names: readonly string[],
  target: string,
): Promise<void> {
  const directory = `${target}.d`;
  await rm(directory, { recursive: true, force: true });
  for (const name of ['bin', 'dev', 'modules', 'proc', 'root', 'sys']) {
    await mkdir(join(directory, name), { recursive: true });
  }
  await copyFile(join(root, 'usr/bin/busybox'), join(directory, 'bin/busybox'));
  const files = await filesOf(join(root, 'usr'), version, names);
  for (const file of files) await copyFile(file, join(directory, 'modules', basename(file)));
  await writeFile(join(directory, 'init'), initScript(files.map((file) => basename(file))));
  await chmod(join(directory, 'init'), 0o755);
  await execute('sh', ['-c', 'find . | cpio --quiet -o -H newc | gzip -1 >"$1"', 'sh', target], { cwd: directory });
  await rm(directory, { recursive: true });
}
