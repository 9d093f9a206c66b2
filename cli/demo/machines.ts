import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import type { JsonRecord, KubeObject } from '../../sandbox/objects.ts';

export const DEMO_NAMESPACE = 'demo';

export interface DemoVm {
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
  const config = {
    cniVersion: '1.1.0',
    type: 'ovn-k8s-cni-overlay',
    name,
    topology: 'localnet',
    physicalNetworkName: physnet,
    netAttachDefName: `${namespace}/${name}`,
  };
  return {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace },
    spec: { config: JSON.stringify(config) },
  };
}
