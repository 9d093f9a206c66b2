import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execute } from './commands.ts';
import { BOOT_MODULES, CONTAINERD_SUITE, MODULES, PACKAGES, SUITE } from './debian.ts';
import { initScript, installModules, packInitramfs } from './initramfs.ts';
import type { Places } from './places.ts';

const PACKAGES_HOOK = join(import.meta.dirname, 'base-packages.sh');
const DISK_SIZE = '8G';
/** No program reads them there. */
const LEFT_OUT = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*'];

/** Creates disk, kernel and initramfs of Debian packages in a minute, as root. @throws Error if some are missing */
export async function makeBase(places: Places, mirror: string, say: (what: string) => void): Promise<void> {
  if (await isMade(places)) return;
  await rm(places.stamp, { force: true });
  const root = join(places.home, 'root');
  try {
    await mkdir(places.home, { recursive: true });
    await rm(root, { recursive: true, force: true });
    say(`Debian ${SUITE} from ${mirror}, once`);
    await install(root, mirror);
    say('kernel, initramfs and disk, once');
    await makeKernel(root, places);
    await copyFile(join(root, 'usr/bin/busybox'), places.busybox);
    await makeDisk(root, places.disk);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
  await writeFile(places.stamp, await ingredients());
}

export async function isMade(places: Places): Promise<boolean> {
  return (await readFile(places.stamp, 'utf8').catch(() => '')) === (await ingredients());
}

async function ingredients(): Promise<string> {
  const hash = createHash('sha256');
  hash.update(
    JSON.stringify([SUITE, CONTAINERD_SUITE, PACKAGES, MODULES, BOOT_MODULES, LEFT_OUT, DISK_SIZE, initScript([])]),
  );
  hash.update(await readFile(PACKAGES_HOOK));
  return `${hash.digest('hex')}\n`;
}

async function install(root: string, mirror: string): Promise<void> {
  await execute(
    'mmdebstrap',
    [
      ...['--quiet', '--mode=root', '--variant=minbase', '--format=directory', `--include=${PACKAGES.join(',')}`],
      ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
      '--aptopt=Acquire::Languages "none"',
      // It must be signed, but a mirror may be older than the validity of a release file.
      '--aptopt=Acquire::Check-Valid-Until "false"',
      `--customize-hook=sh '${PACKAGES_HOOK}' "$1"`,
      ...[SUITE, root, `deb ${mirror} ${SUITE} main`],
    ],
    { env: { ...process.env, LAB_MIRROR: mirror, LAB_SUITE: SUITE, LAB_CONTAINERD_SUITE: CONTAINERD_SUITE } },
  );
}

async function makeKernel(root: string, places: Places): Promise<void> {
  const unpacked = join(root, 'var/cache/lab/kernel');
  const [image] = (await readdir(join(unpacked, 'boot'))).filter((name) => name.startsWith('vmlinuz-'));
  if (image === undefined) throw new Error(`the kernel's package has no vmlinuz: ${unpacked}`);
  const version = image.slice('vmlinuz-'.length);
  await copyFile(join(unpacked, 'boot', image), places.kernel);
  await installModules(unpacked, root, version, MODULES);
  await packInitramfs(root, version, BOOT_MODULES, places.initramfs);
  await rm(join(root, 'var/cache/lab'), { recursive: true });
}

async function makeDisk(root: string, disk: string): Promise<void> {
  await rm(disk, { force: true });
  const options = ['-q', '-L', 'lab', '-O', '^has_journal', '-E', 'lazy_itable_init=1,root_owner=0:0'];
  await execute('mke2fs', ['-t', 'ext4', ...options, '-d', root, disk, DISK_SIZE]);
}
