import { parseQuantity, wholeValue } from '../../model/quantity.ts';
import { at, isObject, type Json, type JsonObject, type Pod, type VirtualMachineInstance } from '../objects.ts';

/**
 * The virt-launcher pod of a VMI, in the form that KubeVirt's renderer gives it (pkg/virt-controller/services): as far
 * as scheduling, CPU placement and networks go. Images, commands and most volumes are left out.
 */

const IMAGE = 'quay.io/kubevirt/virt-launcher:sandbox';
const NOT_COPIED = [
  'kubectl.kubernetes.io',
  'kubevirt.io/storage-observed-api-version',
  'kubevirt.io/latest-observed-api-version',
];
const OVERHEAD_MIB = 400;

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
      nodeSelector: {
        'kubernetes.io/arch': 'amd64',
        'kubevirt.io/schedulable': 'true',
        ...(isDedicated(vmi) && { 'kubevirt.io/cpumanager': 'true' }),
        ...(at(vmi, 'spec', 'nodeSelector') as Record<string, string> | undefined),
      },
      ...(isObject(at(vmi, 'spec', 'affinity')) && { affinity: at(vmi, 'spec', 'affinity') as JsonObject }),
      tolerations: (at(vmi, 'spec', 'tolerations') ?? []) as { key?: string }[],
      readinessGates: [{ conditionType: 'kubevirt.io/virtual-machine-unpaused' }],
      initContainers: [
        {
          name: 'guest-console-log',
          image: IMAGE,
          restartPolicy: 'Always',
          resources: both({ cpu: '15m', memory: '60M' }),
        },
      ],
      containers: [{ name: 'compute', image: IMAGE, resources: computeResources(vmi) }],
    },
  };
}

/** Every annotation of the VMI but those that tools keep for themselves. */
function copiedAnnotations({ metadata }: VirtualMachineInstance): Record<string, string> {
  const entries = Object.entries(metadata.annotations ?? {});
  return Object.fromEntries(entries.filter(([key]) => !NOT_COPIED.some((prefix) => key.startsWith(prefix))));
}

/**
 * CPUs of a dedicated VMI: V + S + E, request and limit alike. V is the product of the non-zero values among cores,
 * sockets and threads, or what limits or requests say; S the supplemental IO threads; E one for the emulator.
 */
function computeResources(vmi: VirtualMachineInstance) {
  const memory = `${guestMemoryMib(vmi) + OVERHEAD_MIB}Mi`;
  const devices = { 'devices.kubevirt.io/kvm': '1', 'devices.kubevirt.io/tun': '1' };
  if (isDedicated(vmi)) return both({ cpu: String(dedicatedCpus(vmi)), memory, ...devices });
  // Without pinning a vCPU asks for a tenth of a CPU (cpuAllocationRatio 10) and has no limit.
  return { requests: { cpu: `${vcpusOf(vmi) * 100}m`, memory, ...devices }, limits: devices };
}

const both = (amounts: Record<string, string>) => ({ requests: amounts, limits: amounts });

export function dedicatedCpus(vmi: VirtualMachineInstance): number {
  const supplemental = count(at(vmi, 'spec', 'domain', 'ioThreads', 'supplementalPoolThreadCount'));
  const emulator = at(vmi, 'spec', 'domain', 'cpu', 'isolateEmulatorThread') === true ? 1 : 0;
  return vcpusOf(vmi) + supplemental + emulator;
}

/** The guest’s CPUs. */
export function vcpusOf(vmi: VirtualMachineInstance): number {
  const given = ['cores', 'sockets', 'threads'].map((key) => count(at(vmi, 'spec', 'domain', 'cpu', key)));
  const set = given.filter((value) => value > 0);
  if (set.length > 0) return set.reduce((product, value) => product * value, 1);
  const resources = at(vmi, 'spec', 'domain', 'resources');
  const amount = text(at(resources, 'limits', 'cpu')) ?? text(at(resources, 'requests', 'cpu')) ?? '1';
  return wholeValue(parseQuantity(amount));
}

function guestMemoryMib(vmi: VirtualMachineInstance): number {
  const amount =
    text(at(vmi, 'spec', 'domain', 'memory', 'guest')) ??
    text(at(vmi, 'spec', 'domain', 'resources', 'requests', 'memory')) ??
    '1Gi';
  return Math.ceil(wholeValue(parseQuantity(amount)) / 2 ** 20);
}

const isDedicated = (vmi: VirtualMachineInstance) => at(vmi, 'spec', 'domain', 'cpu', 'dedicatedCpuPlacement') === true;

/** The networks that multus attaches, each under a name of its own; the pod network is not among them. */
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

/** `pod` and eleven digits that depend on the network's name alone, as KubeVirt's hashed interface names. */
function interfaceName(network: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(network)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return `pod${hash.toString(16).padStart(16, '0').slice(0, 11)}`;
}

const text = (value: Json | undefined) => (typeof value === 'string' && value !== '' ? value : undefined);
const count = (value: Json | undefined) => (typeof value === 'number' ? value : 0);
