import type { KubeClient } from '../../../kube/client.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane-stage.ts';
import { report, topologyOf } from '../scheduler/stage.ts';

export interface CreatedPod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly schedulerName?: string;
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
  readonly cpu?: Readonly<Record<string, number | object>>;
  readonly ioThreads?: number;
  readonly networks?: Readonly<Record<string, string>>;
}

export function virtualMachineInstance(name: string, options: VmiOptions = {}): KubernetesObject {
  const { namespace = 'tenant', annotations = {}, cpu = { cores: 4, threads: 2 }, ioThreads, networks = {} } = options;
  const own = { dedicatedCpuPlacement: true, isolateEmulatorThread: true };
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
  readonly more?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

export function launcherFor(vmi: CreatedVmi, options: LauncherOptions) {
  const { cpu, labels = {}, annotations = {}, more = {}, spec = {} } = options;
  const { networks } = vmi['spec'] as { networks: { multus?: { networkName: string } }[] };
  const { name, namespace, uid } = vmi.metadata;
  const attached = networks.flatMap(({ multus }) => (multus ? [{ name: multus.networkName, namespace }] : []));
  const amounts = { cpu, memory: '1Gi', ...more };
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance' };
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
      ownerReferences: [{ ...owner, name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }],
      ...spec,
    },
  };
}

/** In OVN-Kubernetes' form. */
export function localnet(namespace: string, name: string, physnet = name): KubernetesObject {
  const localnet = { type: 'ovn-k8s-cni-overlay', topology: 'localnet', physicalNetworkName: physnet };
  return {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace },
    spec: { config: JSON.stringify({ name, netAttachDefName: `${namespace}/${name}`, ...localnet }) },
  };
}

/** Eight cores of two threads in each of two NUMA nodes, and a report. @param physnets NUMA nodes by physnet */
export async function reportingNode(plane: ControlPlane, name: string, physnets: Readonly<Record<string, string>>) {
  await plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const status = topologyOf({
    cells: [
      { id: 0, cpus: '0-15' },
      { id: 1, cpus: '16-31' },
    ],
    cores: Array.from({ length: 16 }, (_, core) => `${2 * core}-${2 * core + 1}`),
    reserved: '',
    physnets: Object.entries(physnets).map(([physnet, cells]) => ({ name: physnet, cells })),
  });
  await report(plane.client, name, status);
}

interface NewPod {
  readonly metadata: { readonly namespace?: string | undefined; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

export type Scene = ReturnType<typeof sceneOf>;

export function sceneOf(client: KubeClient) {
  const vmi = async (name: string, options: VmiOptions = {}): Promise<CreatedVmi> => {
    const object = virtualMachineInstance(name, options);
    const path = `/apis/kubevirt.io/v1/namespaces/${object.metadata.namespace}/virtualmachineinstances`;
    await client.create(path, object).catch((error: { reason?: string }) => {
      if (error.reason !== 'AlreadyExists') throw error;
    });
    return (await client.get(`${path}/${name}`)) as CreatedVmi;
  };
  const admit = async (pod: NewPod, query: Record<string, string> = {}) =>
    (await client.create(`/api/v1/namespaces/${pod.metadata.namespace}/pods`, pod, { query })) as CreatedPod;
  return {
    vmi,
    admit,
    launcher: async (name: string, { vmi: options = {}, ...launcher }: LauncherOptions & { vmi?: VmiOptions }) =>
      admit(launcherFor(await vmi(name, options), launcher)),
  };
}

/** The launcher of a VM of two cores that asks for whole cores: it has 5 CPUs, and 6 when it is padded. */
export const WHOLE_CORES: LauncherOptions & { readonly vmi: VmiOptions } = {
  cpu: '5',
  more: { 'devices.kubevirt.io/kvm': '1' },
  vmi: { annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY }, cpu: { cores: 2, threads: 2 } },
};

export function cpusOf({ spec }: CreatedPod): (string | undefined)[] {
  return spec.containers.map(({ resources }) => resources.limits?.['cpu']);
}

export function devicesOf({ spec }: CreatedPod): string[] {
  const { requests, limits } = spec.containers.find(({ name }) => name === 'compute')?.resources ?? {};
  return Object.keys(limits ?? {})
    .filter((name) => name.includes('plumbline.dev/') && limits?.[name] === '1' && requests?.[name] === '1')
    .map((name) => name.replace('physnet.plumbline.dev/', ''))
    .sort();
}
