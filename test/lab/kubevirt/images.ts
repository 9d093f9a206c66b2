import { chmod, copyFile, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execute } from '../machine/commands.ts';
import { SUITE } from '../machine/debian.ts';
import { debianMirror } from '../machine/missing.ts';
import { makeLayer, writeArchive } from '../machine/oci-archive.ts';
import type { Places } from '../machine/places.ts';
import { HANDLER_PROGRAMS, kubeVirtAsset, LAUNCHER_PROGRAMS, LIBVIRT_SETTINGS } from './assets.ts';
import { countingKernel, packInit } from './guest-kernel.ts';

export const LAUNCHER_IMAGE = 'lab/virt-launcher:1';
export const HANDLER_IMAGE = 'lab/virt-handler:1';
export const GUEST_IMAGE = 'lab/guest:1';
export const GUEST_KERNEL = '/boot/vmlinuz';
export const GUEST_INITRAMFS = '/boot/initramfs.gz';
export const COUNTING_KERNEL = '/boot/counting';

const PACKAGES = [
  ...['base-files', 'bash', 'coreutils', 'grep', 'sed', 'mount', 'util-linux', 'iproute2', 'nftables', 'procps'],
  ...['libvirt-daemon', 'libvirt-daemon-driver-qemu', 'libvirt-daemon-log', 'libvirt-clients', 'libnbd0'],
  ...['qemu-system-x86', 'qemu-utils'],
] as const;
const LEFT_OUT = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*'];

/** KubeVirt's user of libvirt and QEMU, with the name that Debian's libvirt looks up at its start. */
const QEMU_ID = 107;
const USERS = ['qemu', 'libvirt-qemu'] as const;
const PASSWD = [
  'root:x:0:0:root:/root:/bin/bash\n',
  ...USERS.map((name) => `${name}:x:${QEMU_ID}:${QEMU_ID}:${name}:/home/qemu:/bin/bash\n`),
].join('');
const GROUP = ['root:x:0:\n', ...USERS.map((name) => `${name}:x:${QEMU_ID}:\n`)].join('');

/** Debian has one libvirtd, KubeVirt starts virtqemud: with no other driver in the image, they are the same. */
const VIRTQEMUD = `#!/bin/bash
mkdir -p /var/run/libvirt
ln -sfn libvirt-sock /var/run/libvirt/virtqemud-sock
exec /usr/sbin/libvirtd "$@"
`;

/** The layer of Debian's packages, created once and kept next to the guest's disk. */
async function makeDebianLayer(places: Places, say: (what: string) => void): Promise<string> {
  const tar = join(places.home, 'kubevirt-debian.tar');
  const stamp = `${tar}.made-from`;
  const ingredients = JSON.stringify([SUITE, PACKAGES, LEFT_OUT]);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === ingredients) return tar;
  const mirror = await debianMirror();
  say(`libvirt and QEMU of Debian ${SUITE} from ${mirror}, once`);
  await execute('mmdebstrap', [
    // Only unpacked, without configuration or start.
    ...['--quiet', '--mode=root', '--variant=extract', '--format=tar', `--include=${PACKAGES.join(',')}`],
    ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
    ...['--aptopt=Acquire::Languages "none"', '--aptopt=Acquire::Check-Valid-Until "false"'],
    ...[SUITE, `${tar}.part`, `deb ${mirror} ${SUITE} main`],
  ]);
  await rename(`${tar}.part`, tar);
  await writeFile(stamp, ingredients);
  return tar;
}

const archiveOf = ({ home }: Places): string => join(home, 'kubevirt-images.tar');
export const IMAGES_DISK = 'kubevirt-images';

/** Writes the three images: KubeVirt's programs on Debian's libvirt and QEMU, and a guest. @returns the file */
export async function writeKubeVirtImages(places: Places, say: (what: string) => void): Promise<string> {
  const work = join(places.home, 'kubevirt-images');
  await rm(work, { recursive: true, force: true });
  const debian = join(work, 'debian');
  await mkdir(debian, { recursive: true });
  await execute('tar', ['-C', debian, '-xf', await makeDebianLayer(places, say)]);
  await adapt(debian);
  const [base, launcher, handler, guest] = [
    await makeLayer(debian, join(work, 'debian.tar')),
    await makeLayer(await launcherFiles(join(work, 'launcher')), join(work, 'launcher.tar'), { capabilities: true }),
    await makeLayer(await programs(join(work, 'handler'), HANDLER_PROGRAMS), join(work, 'handler.tar')),
    await makeLayer(await guestFiles(places, join(work, 'guest')), join(work, 'guest.tar')),
  ];
  await writeArchive(archiveOf(places), [
    { name: LAUNCHER_IMAGE, layers: [base, launcher], entrypoint: ['/usr/bin/virt-launcher'], user: String(QEMU_ID) },
    { name: HANDLER_IMAGE, layers: [base, handler], entrypoint: ['/usr/bin/virt-handler'] },
    { name: GUEST_IMAGE, layers: [guest] },
  ]);
  await rm(work, { recursive: true });
  return archiveOf(places);
}

async function adapt(root: string): Promise<void> {
  await rm(join(root, 'var/run'), { recursive: true, force: true });
  // Relative: virt-handler follows it below /proc/<pid>/root.
  await symlink('../run', join(root, 'var/run'));
  // Only the listed ones of Debian's essential packages are there.
  await symlink('bash', join(root, 'usr/bin/sh'));
  for (const directory of ['var/cache/apt', 'var/lib/apt', 'dev', 'boot']) {
    await rm(join(root, directory), { recursive: true, force: true });
  }
  for (const directory of ['dev', 'home/qemu', 'usr/lib64/qemu-kvm', 'root']) {
    await mkdir(join(root, directory), { recursive: true });
  }
  // KubeVirt's user puts a link to its client there.
  await mkdir(join(root, 'etc/libvirt/hooks'), { recursive: true });
  await chmod(join(root, 'etc/libvirt/hooks'), 0o777);
  await write(root, 'etc/passwd', PASSWD);
  await write(root, 'etc/group', GROUP);
  await write(root, 'usr/sbin/virtqemud', VIRTQEMUD, 0o755);
  await nameThreadsAsKvmDoes(root);
}

/**
 * The emulation names vCPU threads `CPU 0/TCG`. KubeVirt recognises only `CPU 0/KVM`, and would move those of an
 * emulated guest into its housekeeping cgroup, off their pinned CPUs. The lab tests the behaviour of servers, so the
 * emulation uses the other name.
 */
async function nameThreadsAsKvmDoes(root: string): Promise<void> {
  const file = join(root, 'usr/bin/qemu-system-x86_64');
  const program = await readFile(file);
  const at = program.indexOf('CPU %d/TCG');
  if (at < 0) throw new Error(`${file} names its vCPU threads in another way`);
  program.write('CPU %d/KVM', at, 'latin1');
  await writeFile(file, program);
}

async function launcherFiles(root: string): Promise<string> {
  await programs(root, LAUNCHER_PROGRAMS);
  for (const name of LIBVIRT_SETTINGS)
    await write(root, `etc/libvirt/${name}`, await readFile(kubeVirtAsset(name), 'utf8'));
  await execute('setcap', ['cap_net_bind_service=+ep', join(root, 'usr/bin/virt-launcher-monitor')]);
  return root;
}

async function programs(root: string, names: readonly string[]): Promise<string> {
  await mkdir(join(root, 'usr/bin'), { recursive: true });
  for (const name of names) {
    await copyFile(kubeVirtAsset(name), join(root, 'usr/bin', name));
    await chmod(join(root, 'usr/bin', name), 0o755);
  }
  return root;
}

async function guestFiles(places: Places, root: string): Promise<string> {
  await mkdir(join(root, 'boot'), { recursive: true });
  await copyFile(places.kernel, join(root, GUEST_KERNEL));
  await packInit(places.busybox, join(root, GUEST_INITRAMFS));
  await writeFile(join(root, COUNTING_KERNEL), countingKernel());
  return root;
}

async function write(root: string, path: string, text: string, mode = 0o644): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
  await chmod(join(root, path), mode);
}
