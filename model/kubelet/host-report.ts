import type { HostDescription } from '../host.ts';
import type { KubeletConfig } from './kubelet.ts';
import type { CellMemory } from './memory-state.ts';

/** In the form of a NodeTopology's status. */
export interface HostReport
  extends HostDescription,
    Pick<KubeletConfig, 'cpuManager' | 'topologyManager' | 'distances' | 'featureGates'> {
  readonly kubeletVersion?: string | undefined;
  readonly reserved: string;
  readonly offline?: string | undefined;
  readonly memoryManager?:
    | {
        readonly policy: string;
        readonly cells?: readonly (CellMemory & { readonly state?: ReportedMemoryState | undefined })[] | undefined;
      }
    | undefined;
  readonly assignments: readonly { readonly podUID: string; readonly container: string; readonly cpus: string }[];
  /** Devices of device plugins other than Plumbline's. Absent: not known. */
  readonly devices?: readonly ReportedDevices[] | undefined;
  readonly physnets?: readonly { readonly name: string; readonly cells: string }[] | undefined;
  readonly tunnel?: { readonly cells: string } | undefined;
  /** CPU list of the virtual switch's poll mode driver threads, which use these CPUs all the time. */
  readonly pmdCPUs?: string | undefined;
  /** Whether the agent sets CPU masks. Default: true. */
  readonly pinsVMs?: boolean | undefined;
  readonly conditions?:
    | readonly { readonly type: string; readonly status: string; readonly message: string }[]
    | undefined;
}

export interface ReportedDevices {
  readonly resource: string;
  readonly groups: readonly {
    /** A list such as `0-1`; absent for devices without topology. */
    readonly cells?: string | undefined;
    /** Healthy devices. */
    readonly total: number;
    readonly free: number;
  }[];
  /** Whether DRA serves the resource: the kubelet has no hint for it. */
  readonly dra?: boolean | undefined;
  /** Number of devices that are not in the groups. */
  readonly unhealthy?: number | undefined;
}

export interface ReportedMemoryState {
  /** Number of blocks that include the NUMA node. */
  readonly blocks: number;
  /** The NUMA nodes in the same group, as a list. */
  readonly group: string;
  readonly free: Readonly<Record<string, number>>;
}
