import type { VmiShape } from '../shapes.ts';
import type { SelectingSpec } from './node-selection.ts';

/** The fields that decide a launcher's placement. Source: KubeVirt 1.9, pkg/instancetype/apply, preference/apply. */

export interface InstancetypeShape {
  readonly nodeSelector?: Readonly<Record<string, string>> | null | undefined;
  readonly annotations?: Readonly<Record<string, string>> | null | undefined;
  readonly cpu: {
    readonly guest: number;
    readonly dedicatedCPUPlacement?: boolean | null | undefined;
    readonly isolateEmulatorThread?: boolean | null | undefined;
    readonly numa?: { readonly guestMappingPassthrough?: object | undefined } | null | undefined;
  };
  readonly memory: {
    readonly guest: string;
    readonly hugepages?: { readonly pageSize?: string | undefined } | null | undefined;
  };
  readonly gpus?: readonly { readonly deviceName?: string | undefined }[] | null | undefined;
  readonly hostDevices?: readonly { readonly deviceName?: string | undefined }[] | null | undefined;
  readonly ioThreadsPolicy?: string | null | undefined;
  readonly ioThreads?: { readonly supplementalPoolThreadCount?: number | undefined } | null | undefined;
}

export interface PreferenceShape {
  readonly annotations?: Readonly<Record<string, string>> | null | undefined;
  readonly preferSpreadSocketToCoreRatio?: number | null | undefined;
  readonly cpu?:
    | {
        readonly preferredCPUTopology?: string | null | undefined;
        readonly spreadOptions?: { readonly across?: string | null; readonly ratio?: number | null } | null | undefined;
      }
    | null
    | undefined;
}

type StartingVmi = VmiShape & { readonly spec: VmiShape['spec'] & SelectingSpec };

/** A field of the VM itself takes precedence where KubeVirt allows one. */
export function expandVmi<Vmi extends StartingVmi>(
  vmi: Vmi,
  instancetype: InstancetypeShape | undefined,
  preference: PreferenceShape | undefined,
): Vmi {
  const annotations = { ...preference?.annotations, ...instancetype?.annotations, ...vmi.metadata.annotations };
  const metadata = { ...vmi.metadata, annotations };
  if (instancetype === undefined) return { ...vmi, metadata };
  const { cpu, memory, nodeSelector, gpus, hostDevices, ioThreadsPolicy, ioThreads } = instancetype;
  const { domain } = vmi.spec;
  const vmiCpu = domain.cpu;
  const expanded = {
    ...domain,
    cpu: {
      ...vmiCpu,
      ...topologyOf(cpu.guest, preference),
      dedicatedCpuPlacement: cpu.dedicatedCPUPlacement ?? vmiCpu?.dedicatedCpuPlacement,
      isolateEmulatorThread: cpu.isolateEmulatorThread ?? vmiCpu?.isolateEmulatorThread,
      numa: cpu.numa ?? vmiCpu?.numa,
    },
    memory: { ...domain.memory, guest: memory.guest, hugepages: memory.hugepages ?? domain.memory?.hugepages },
    devices: {
      ...domain.devices,
      gpus: [...(domain.devices?.gpus ?? []), ...(gpus ?? [])],
      hostDevices: [...(domain.devices?.hostDevices ?? []), ...(hostDevices ?? [])],
    },
    ioThreadsPolicy: ioThreadsPolicy ?? domain.ioThreadsPolicy,
    ioThreads: ioThreads ?? domain.ioThreads,
  };
  return {
    ...vmi,
    metadata,
    spec: { ...vmi.spec, domain: expanded, nodeSelector: nodeSelector ?? vmi.spec.nodeSelector },
  };
}

const SPREAD_RATIO = 2;

function topologyOf(vcpus: number, preference: PreferenceShape | undefined) {
  const { preferredCPUTopology, spreadOptions } = preference?.cpu ?? {};
  const singleCpu = { sockets: 1, cores: 1, threads: 1 };
  if (vcpus === 1) return singleCpu;
  const ratio = spreadOptions?.ratio || preference?.preferSpreadSocketToCoreRatio || SPREAD_RATIO;
  switch (preferredCPUTopology?.replace(/^prefer/, '').toLowerCase()) {
    case 'cores':
      return { ...singleCpu, cores: vcpus };
    case 'threads':
      return { ...singleCpu, threads: vcpus };
    case 'spread':
      return { ...singleCpu, ...spread(vcpus, ratio, spreadOptions?.across ?? '') };
    default:
      return { ...singleCpu, sockets: vcpus };
  }
}

function spread(vcpus: number, ratio: number, across: string) {
  if (across === 'CoresThreads') return { threads: ratio, cores: Math.floor(vcpus / ratio) };
  if (across === 'SocketsCoresThreads') {
    return { threads: 2, cores: ratio, sockets: Math.floor(Math.floor(vcpus / 2) / ratio) };
  }
  return { cores: ratio, sockets: Math.floor(vcpus / ratio) };
}
