import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import type { JsonObject, KubeObject } from '../../sandbox/objects.ts';

export const DEMO_NAMESPACE = 'demo';

/** A VM of 4 cores x 2 threads with an isolated emulator thread: its launcher requests 9 CPUs. */
export interface DemoVm {
  readonly name: string;
  readonly annotated: boolean;
  /** The network attachment definition of the VM's second interface. */
  readonly network?: string;
  readonly node?: string;
}

export function virtualMachine({ name, annotated, network, node }: DemoVm): KubeObject {
  return machineFrom(name, {
    annotations: annotated ? { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } : {},
    cpu: { sockets: 1, cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true },
    networks: network === undefined ? [] : [{ name: 'dataplane', multus: { networkName: network } }],
    node,
  });
}

/** A VM with shared CPUs and a CPU mask. */
export interface MaskedVm {
  readonly name: string;
  readonly vcpus: number;
  readonly mask: string;
  readonly node: string;
}

export function maskedMachine({ name, vcpus, mask, node }: MaskedVm): KubeObject {
  return machineFrom(name, {
    annotations: { [CPU_MASK_ANNOTATION]: mask },
    cpu: { sockets: 1, cores: vcpus, threads: 1 },
    networks: [],
    node,
  });
}

interface Template {
  readonly annotations: Record<string, string>;
  readonly cpu: JsonObject;
  /** Networks in addition to the pod network. */
  readonly networks: readonly JsonObject[];
  readonly node: string | undefined;
}

function machineFrom(name: string, { annotations, cpu, networks, node }: Template): KubeObject {
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

/** A localnet of OVN-Kubernetes on a physnet. */
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
