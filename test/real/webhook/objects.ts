import type { ControlPlane, KubernetesObject } from '../control-plane.ts';

/** The objects of the scenarios, as far as they are read. */

export interface CreatedPod {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly CreatedContainer[];
    readonly initContainers?: readonly CreatedContainer[];
  };
  readonly status: { readonly qosClass: string };
}

export interface CreatedContainer {
  readonly name: string;
  readonly resources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
}

export type CreatedVmi = KubernetesObject & { readonly metadata: { readonly uid: string } };

export interface VmiOptions {
  readonly namespace?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Default: 4 cores x 2 threads, whose launcher requests 9 CPUs. */
  readonly cpu?: Readonly<Record<string, number | object>>;
  /** dedicatedCpuPlacement with an isolated emulator thread; default: true. */
  readonly dedicated?: boolean;
  /** Threads of a supplemental pool. */
  readonly ioThreads?: number;
  /** Interface name to network name. */
  readonly networks?: Readonly<Record<string, string>>;
}

/** A VMI, by default with dedicated CPUs and an isolated emulator thread. */
export function virtualMachineInstance(name: string, options: VmiOptions = {}): KubernetesObject {
  const { namespace = 'tenant', annotations = {}, cpu = { cores: 4, threads: 2 }, ioThreads, networks = {} } = options;
  const own = options.dedicated === false ? {} : { dedicatedCpuPlacement: true, isolateEmulatorThread: true };
  const pool = ioThreads && {
    ioThreadsPolicy: 'supplementalPool',
    ioThreads: { supplementalPoolThreadCount: ioThreads },
  };
  const secondary = Object.entries(networks).map(([one, networkName]) => ({ name: one, multus: { networkName } }));
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace, annotations },
    spec: {
      domain: { cpu: { ...cpu, ...own }, devices: {}, ...pool },
      networks: [{ name: 'default', pod: {} }, ...secondary],
    },
  };
}

export interface LauncherOptions {
  readonly cpu: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The VMI's annotations are added. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Additional resources of compute. */
  readonly more?: Readonly<Record<string, string>>;
  readonly sidecars?: readonly object[];
  /** Additional fields of the pod's spec. */
  readonly spec?: object;
}

/** The launcher pod that virt-controller would create for a VMI. */
export function launcherFor(vmi: CreatedVmi, options: LauncherOptions) {
  const { cpu, labels = {}, annotations = {}, more = {}, sidecars = [], spec = {} } = options;
  const { networks } = vmi['spec'] as { networks: { multus?: { networkName: string } }[] };
  const { name, namespace, uid } = vmi.metadata;
  const attached = networks.flatMap(({ multus }) => (multus ? [{ name: multus.networkName, namespace }] : []));
  const amounts = { cpu, memory: '1Gi', ...more };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: 'virt-launcher-',
      namespace,
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid, ...labels },
      annotations: {
        ...(vmi.metadata['annotations'] as object | undefined),
        ...(attached.length === 0 ? {} : { 'k8s.v1.cni.cncf.io/networks': JSON.stringify(attached) }),
        ...annotations,
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
      restartPolicy: 'Never',
      containers: [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }, ...sidecars],
      ...spec,
    },
  };
}

export function sidecar(name: string, requests: Readonly<Record<string, string>>, limits = requests): object {
  return { name, image: 'none', resources: { requests, limits } };
}

export function nadOf(namespace: string, name: string, config: object): KubernetesObject {
  return {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace },
    spec: {
      config: JSON.stringify({
        type: 'ovn-k8s-cni-overlay',
        name,
        netAttachDefName: `${namespace}/${name}`,
        ...config,
      }),
    },
  };
}

export function localnet(namespace: string, name: string, physnet = name): KubernetesObject {
  return nadOf(namespace, name, { topology: 'localnet', physicalNetworkName: physnet });
}

interface NodeOptions {
  readonly threads: number;
  readonly labels?: Readonly<Record<string, string>>;
  /** NUMA nodes by physnet. */
  readonly physnets?: Readonly<Record<string, string>>;
  readonly tunnel?: string;
  /** Default: true. */
  readonly fullPcpusOnly?: boolean;
  /** Whether it is cordoned. */
  readonly unschedulable?: boolean;
}

/** A node with 16 cores in two NUMA nodes, and its agent's report. */
export async function nodeWith(plane: ControlPlane, name: string, options: NodeOptions): Promise<void> {
  const { threads, labels = {}, physnets = {}, tunnel, fullPcpusOnly = true, unschedulable = false } = options;
  const topology = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name } };
  // Without it, more than two threads per core on a few nodes would be quarantined.
  const arch = { 'kubernetes.io/arch': threads > 2 ? 'ppc64le' : 'amd64' };
  const metadata = { name, labels: { ...arch, ...labels } };
  await plane.create({ apiVersion: 'v1', kind: 'Node', metadata, spec: { unschedulable } }, topology);
  const cores = Array.from({ length: 16 }, (_, core) => Array.from({ length: threads }, (__, i) => core * threads + i));
  const cpusOf = (from: number, to: number) => cores.slice(from, to).flat().join(',');
  const status = {
    cells: [
      { id: 0, cpus: cpusOf(0, 8) },
      { id: 1, cpus: cpusOf(8, 16) },
    ],
    cores: cores.map((ids) => ids.join(',')),
    reserved: '',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': String(fullPcpusOnly) } },
    assignments: [],
    physnets: Object.entries(physnets).map(([physnet, cells]) => ({ name: physnet, cells })),
    ...(tunnel === undefined ? {} : { tunnel: { cells: tunnel } }),
  };
  const path = `/apis/plumbline.dev/v1alpha1/nodetopologies/${name}/status`;
  await plane.client.patch(path, 'application/merge-patch+json', { status });
}
