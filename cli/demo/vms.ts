import { nodeTopology } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import { EVENTS, NODE_TOPOLOGIES, PODS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord, KubeObject, KubePod } from '../../sandbox/objects.ts';
import type { DemoCluster } from './cluster.ts';
import { until } from './until.ts';

export const DEMO_NAMESPACE = 'demo';

interface DemoVm {
  readonly name: string;
  readonly annotated: boolean;
  readonly network?: string;
  readonly node?: string;
}

export function demoMachine({ name, annotated, network, node }: DemoVm): KubeObject {
  const annotations = annotated ? { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } : {};
  const cpu = { sockets: 1, cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
  const networks = network === undefined ? [] : [{ name: 'dataplane', multus: { networkName: network } }];
  return machineFrom(name, annotations, cpu, node, networks);
}

export function maskedMachine(name: string, vcpus: number, mask: string, node: string): KubeObject {
  return machineFrom(name, { [CPU_MASK_ANNOTATION]: mask }, { sockets: 1, cores: vcpus, threads: 1 }, node);
}

export function machineFrom(
  name: string,
  annotations: Record<string, string>,
  cpu: JsonRecord,
  node: string | undefined,
  networks: readonly JsonRecord[] = [],
): KubeObject {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: DEMO_NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { annotations },
        spec: {
          ...(node === undefined ? {} : { nodeSelector: { 'kubernetes.io/hostname': node } }),
          domain: { cpu, memory: { guest: '1Gi' }, devices: {} },
          networks: [{ name: 'default', pod: {} }, ...networks],
        },
      },
    },
  };
}

export function localnet(name: string, physnet: string, namespace = DEMO_NAMESPACE): KubeObject {
  const type = { cniVersion: '1.1.0', type: 'ovn-k8s-cni-overlay', name, topology: 'localnet' };
  const config = { ...type, physicalNetworkName: physnet, netAttachDefName: `${namespace}/${name}` };
  return {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace },
    spec: { config: JSON.stringify(config) },
  };
}

export async function createVm(cluster: DemoCluster, vm: DemoVm): Promise<KubePod> {
  let launcher: KubePod | undefined;
  // A watch, because KubeVirt deletes a launcher within milliseconds after the kubelet rejects it.
  const unfollow = cluster.client.follow(PODS, ({ type, object }) => {
    if (type !== 'DELETED' && isLauncherOf(object, vm.name)) launcher ??= object;
  });
  try {
    await cluster.client.create(VIRTUAL_MACHINES, demoMachine(vm));
    return await until(`the launcher pod of ${vm.name}`, 10, () => launcher);
  } finally {
    unfollow();
  }
}

export function demoLauncher(cluster: DemoCluster, vm: string): KubePod | undefined {
  return cluster.client.list(PODS).find((pod) => isLauncherOf(pod, vm));
}

function isLauncherOf({ metadata }: KubePod, vm: string): boolean {
  return metadata.namespace === DEMO_NAMESPACE && metadata.labels?.['vm.kubevirt.io/name'] === vm;
}

/** Waits until the VM's launcher runs. @throws StepFailed with the reason for the delay */
export async function untilRunning(cluster: DemoCluster, vm: string, seconds: number): Promise<KubePod> {
  try {
    return await until(`${vm} to run`, seconds, () => {
      const pod = demoLauncher(cluster, vm);
      return pod?.status?.phase === 'Running' ? pod : undefined;
    });
  } catch (error) {
    const messages = eventsOf(cluster, vm).map(({ message }) => message);
    throw new Error(`${(error as Error).message}; last heard: ${messages.at(-1) ?? 'nothing'}`, { cause: error });
  }
}

export function eventsOf(cluster: DemoCluster, vm: string) {
  const launcher = demoLauncher(cluster, vm)?.metadata.name;
  const isAbout = (event: KubeObject) => {
    const involved = event['involvedObject'] as { name?: string } | undefined;
    return involved?.name === launcher || involved?.name === vm;
  };
  return cluster.client
    .list(EVENTS)
    .filter(isAbout)
    .map((event) => ({ reason: String(event['reason']), message: String(event['message']) }));
}

export function computeOf(pod: KubePod) {
  const { requests = {}, limits = {} } = pod.spec.containers.find(({ name }) => name === 'compute')?.resources ?? {};
  return { requests, limits };
}

export const assignmentsOn = (cluster: DemoCluster, node: string) =>
  nodeTopology.parse(cluster.client.get(NODE_TOPOLOGIES, undefined, node)).status?.assignments ?? [];

export function reportedCpus(cluster: DemoCluster, node: string, uid: string): CpuSet | undefined {
  const assignment = assignmentsOn(cluster, node).find(({ podUID }) => podUID === uid);
  return assignment && CpuSet.parse(assignment.cpus);
}
