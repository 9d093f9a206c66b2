import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { assetDirectories } from '../../support/parts.ts';
import { isMade } from './base.ts';
import { execute } from './commands.ts';
import { SUITE } from './debian.ts';
import type { Places } from './places.ts';

const PROGRAMS: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  mmdebstrap: 'mmdebstrap',
  mke2fs: 'e2fsprogs',
  modprobe: 'kmod',
  cpio: 'cpio',
  xz: 'xz-utils',
  ssh: 'openssh-client',
  setpriv: 'util-linux',
};
const KUBERNETES = ['kubelet', 'kube-apiserver', 'kube-scheduler', 'kube-controller-manager', 'etcd'];
const DEFAULT_MIRROR = 'http://deb.debian.org/debian';
const APT_HELPER = '/usr/lib/apt/apt-helper';

/** The line about the lab's missing requirements on this machine; undefined if it has all. */
export async function whatIsMissing(places: Places): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the lab needs Linux on x86-64';
  if (process.getuid?.() !== 0) return 'the lab needs root, to make the disk of its machine';
  const path = (process.env['PATH'] ?? '').split(delimiter);
  const lacking = Object.keys(PROGRAMS).filter((name) => !isIn(name, [...path, '/usr/sbin', '/sbin']));
  if (lacking.length > 0) {
    const packages = lacking.map((name) => PROGRAMS[name]).join(' ');
    return `the lab needs ${lacking.join(', ')} (Debian: apt-get install ${packages})`;
  }
  const binaries = KUBERNETES.filter((name) => !isIn(name, [...assetDirectories(), '/usr/bin', '/usr/local/bin']));
  if (binaries.length > 0) {
    return `the lab needs ${binaries.join(', ')} in KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin`;
  }
  if (await isMade(places)) return undefined;
  const mirror = await debianMirror();
  const release = join('/tmp', `plumbline-lab-release-${process.pid}`);
  const reached = await execute(APT_HELPER, ['-q', 'download-file', `${mirror}/dists/${SUITE}/Release`, release]).then(
    () => true,
    () => false,
  );
  await rm(release, { force: true });
  return reached ? undefined : `the lab needs Debian packages, and ${mirror} is not reached`;
}

export async function debianMirror(): Promise<string> {
  const format = ['--format', '$(ORIGIN) $(SITE) $(REPO_URI)', 'Created-By: Packages'];
  const targets = await execute('apt-get', ['indextargets', ...format]).catch(() => '');
  const own = targets.split('\n').find((line) => line.startsWith('Debian ') && !line.includes('security'));
  return own?.split(' ')[2]?.replace(/\/$/, '') ?? DEFAULT_MIRROR;
}

function isIn(name: string, directories: readonly string[]): boolean {
  return directories.some((directory) => existsSync(join(directory, name)));
}
