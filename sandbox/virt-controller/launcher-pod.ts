import { at, isObject, type JsonObject, type Pod, type VirtualMachineInstance } from '../objects.ts';
import { containersOf, initContainersOf, isDedicated, launchSecurity, text } from './launcher-containers.ts';

/**
 * The virt-launcher pod of a VMI, as in KubeVirt's renderer (pkg/virt-controller/services), limited to scheduling, CPU
 * placement and networks. Images, commands and most volumes are left out.
 */

const NOT_COPIED = [
  'kubectl.kubernetes.io',
  'kubevirt.io/storage-observed-api-version',
  'kubevirt.io/latest-observed-api-version',
];

export function launcherPod(vmi: VirtualMachineInstance): Pod {
  const { name, namespace = 'default', uid = '' } = vmi.metadata;
  const hostname = text(at(vmi, 'spec', 'hostname')) ?? name;
  const networks = multusNetworks(vmi);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: '',
      generateName: `virt-launcher-${name}-`,
      namespace,
      labels: {
        ...vmi.metadata.labels,
        'kubevirt.io': 'virt-launcher',
        'kubevirt.io/created-by': uid,
        'vm.kubevirt.io/name': hostname,
      },
      annotations: {
        ...copiedAnnotations(vmi),
        'kubevirt.io/domain': name,
        'kubectl.kubernetes.io/default-container': 'compute',
        ...(networks.length > 0 && { 'k8s.v1.cni.cncf.io/networks': JSON.stringify(networks) }),
      },
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachineInstance',
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      hostname,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 210,
      schedulerName: text(at(vmi, 'spec', 'schedulerName')) ?? 'default-scheduler',
      nodeSelector: nodeSelector(vmi),
      ...affinity(vmi),
      tolerations: (at(vmi, 'spec', 'tolerations') ?? []) as { key?: string }[],
      readinessGates: [{ conditionType: 'kubevirt.io/virtual-machine-unpaused' }],
      initContainers: initContainersOf(vmi),
      containers: containersOf(vmi),
    },
  };
}

/** Annotations of the VMI, except those that tools use internally. */
function copiedAnnotations({ metadata }: VirtualMachineInstance): Record<string, string> {
  const entries = Object.entries(metadata.annotations ?? {});
  return Object.fromEntries(entries.filter(([key]) => !NOT_COPIED.some((prefix) => key.startsWith(prefix))));
}

/**
 * Node labels for the machine type and for features.
 * Source: pkg/virt-controller/services/nodeselectorrenderer.go
 */
function nodeSelector(vmi: VirtualMachineInstance): Record<string, string> {
  const machine = text(at(vmi, 'spec', 'domain', 'machine', 'type')) ?? 'q35';
  const features = launchSecurity(vmi);
  if (isObject(at(vmi, 'spec', 'domain', 'cpu', 'realtime'))) features.push('realtime');
  return {
    'kubernetes.io/arch': 'amd64',
    'kubevirt.io/schedulable': 'true',
    [`machine-type.node.kubevirt.io/${machine}`]: 'true',
    ...(isDedicated(vmi) && { 'kubevirt.io/cpumanager': 'true' }),
    ...Object.fromEntries(features.map((feature) => [`kubevirt.io/${feature}`, 'true'])),
    ...(at(vmi, 'spec', 'nodeSelector') as Record<string, string> | undefined),
  };
}

/**
 * Keeps a guest with the host's CPU model off nodes whose model libvirt considers obsolete, in addition to the VMI's
 * own terms.
 */
function affinity(vmi: VirtualMachineInstance): Pick<Pod['spec'], 'affinity'> {
  const own = at(vmi, 'spec', 'affinity') as Pod['spec']['affinity'];
  const model = text(at(vmi, 'spec', 'domain', 'cpu', 'model')) ?? 'host-model';
  if (model !== 'host-model') return own === undefined ? {} : { affinity: own };
  const terms = own?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), OBSOLETE],
  }));
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return { affinity: { ...own, nodeAffinity: { ...own?.nodeAffinity, ...required } } };
}

const OBSOLETE = { key: 'node-labeller.kubevirt.io/obsolete-host-model', operator: 'DoesNotExist' };

/** The networks that multus attaches, each with a unique interface name; the pod network is not among them. */
function multusNetworks(vmi: VirtualMachineInstance): JsonObject[] {
  const networks = at(vmi, 'spec', 'networks');
  const home = vmi.metadata.namespace ?? 'default';
  return (Array.isArray(networks) ? networks : []).flatMap((network) => {
    const wanted = text(at(network, 'multus', 'networkName'));
    if (wanted === undefined) return [];
    const [namespace, name] = wanted.includes('/') ? (wanted.split('/', 2) as [string, string]) : [home, wanted];
    return [{ name, namespace, interface: interfaceName(String(at(network, 'name'))) }];
  });
}

/** `pod` and eleven digits that only depend on the network's name, similar to KubeVirt's hashed interface names. */
function interfaceName(network: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(network)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return `pod${hash.toString(16).padStart(16, '0').slice(0, 11)}`;
}
