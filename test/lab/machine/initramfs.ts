import { chmod, copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { execute } from './commands.ts';

/** Puts modules with their dependencies into the guest's root. @throws Error if the kernel lacks one */
export async function installModules(
  unpacked: string,
  root: string,
  version: string,
  names: readonly string[],
): Promise<void> {
  const from = join(unpacked, 'usr/lib/modules', version);
  const to = join(root, 'usr/lib/modules', version);
  // modprobe searches below lib/, where the package has nothing.
  await execute('depmod', ['-b', join(unpacked, 'usr'), version]);
  await mkdir(to, { recursive: true });
  for (const file of (await readdir(from)).filter((name) => /^modules\.(builtin|order)/.test(name))) {
    await copyFile(join(from, file), join(to, file));
  }
  for (const file of await filesOf(join(unpacked, 'usr'), version, names)) {
    const target = join(to, relative(from, file));
    await mkdir(dirname(target), { recursive: true });
    await copyFile(file, target);
    // The emulated kernel would take long for it.
    if (target.endsWith('.xz')) await execute('xz', ['-d', target]);
  }
  await execute('depmod', ['-b', join(root, 'usr'), version]);
}

async function filesOf(root: string, version: string, names: readonly string[]): Promise<readonly string[]> {
  const files = new Set<string>();
  for (const name of names) {
    const lines = await execute('modprobe', ['-d', root, '-S', version, '--show-depends', name]);
    for (const [, file] of lines.matchAll(/^insmod (\S+)/gm)) files.add(file!);
  }
  return [...files];
}

/** Seconds within which the disks must appear. */
const DISKS = 60;

/** Mounts the disk, adds the files of the second disk, and starts systemd. @param modules in order of loading */
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
