/** The second number of `v1.8.4` or `v1.10.0-dev`. @throws Error if it is not a version of KubeVirt 1 */
export function minorOf(version: string): number {
  const [, minor] = /^v1\.(\d+)\./.exec(version) ?? [];
  if (minor === undefined) throw new Error(`virt-api reports the version ${version}, which is not of KubeVirt 1`);
  return Number(minor);
}

/** Recorded VMs with a field that older releases refuse, with the first minor version that admits them. */
export const CASES_SINCE: Readonly<Record<string, number>> = {
  // ContainerPath volumes (staging/src/kubevirt.io/api/core/v1/schema.go).
  'containerpath-c4': 8,
};

/** Annotations, labels, devices and volumes of recorded launchers, with the first minor version that adds them. */
export const PARTS_SINCE: Readonly<Record<string, number>> = {
  // pkg/virt-controller/services/template.go
  'kubevirt.io/memory-overhead-bytes': 9,
  'devices.kubevirt.io/tdx': 9,
};

/** Node labels in the selectors of recorded launchers, with their names before a minor version. */
export const RENAMED_LABELS: readonly { readonly since: number; readonly label: string; readonly before: string }[] = [
  // staging/src/kubevirt.io/api/core/v1/types.go
  { since: 8, label: 'kubevirt.io/cpumanager', before: 'cpumanager' },
];
