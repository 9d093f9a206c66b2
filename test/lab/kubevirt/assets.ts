import { existsSync } from 'node:fs';
import { join } from 'node:path';

export const LAUNCHER_PROGRAMS = [
  ...['virt-launcher', 'virt-launcher-monitor', 'virt-probe', 'virt-tail', 'virt-freezer', 'container-disk'],
  // Since 1.9 virt-launcher refuses to start without it: libvirt calls it for the arriving guest of a migration.
  'libvirt-hook-client',
  // KubeVirt's own script through which virt-handler learns libvirt's capabilities on the node.
  'node-labeller.sh',
] as const;
export const HANDLER_PROGRAMS = ['virt-handler', 'virt-chroot'] as const;
export const LIBVIRT_SETTINGS = ['qemu.conf', 'virtqemud.conf'] as const;
const CONTROL_PROGRAMS = ['virt-api', 'virt-controller', 'virt-operator', 'resource-generator'] as const;

const ALL: readonly string[] = [...CONTROL_PROGRAMS, ...HANDLER_PROGRAMS, ...LAUNCHER_PROGRAMS, ...LIBVIRT_SETTINGS];

export function missingKubeVirt(): string | undefined {
  const folder = process.env['KUBEVIRT_ASSETS'] ?? '';
  if (folder === '') return `name the folder with ${ALL.join(', ')} in KUBEVIRT_ASSETS`;
  const missing = ALL.filter((name) => !existsSync(join(folder, name)));
  return missing.length === 0 ? undefined : `${folder} of KUBEVIRT_ASSETS lacks ${missing.join(', ')}`;
}

/** The path of one of KubeVirt's files. @throws Error that names what is missing */
export function kubeVirtAsset(name: string): string {
  const missing = missingKubeVirt();
  if (missing !== undefined) throw new Error(missing);
  return join(process.env['KUBEVIRT_ASSETS'] ?? '', name);
}
