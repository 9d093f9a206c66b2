import type { CpuSet } from '../../model/cpu-set.ts';
import type { Assignments } from '../assignments/assignments.ts';
import type { RefusedStarts } from '../device-plugin/allocation-checker.ts';
import type { KubeletConfigReading } from '../host/kubelet-config-reader.ts';
import type { KubeletRuns } from '../host/kubelet-runs.ts';
import type { Interference } from '../interrupts/interference.ts';
import type { Problems, Services } from '../lifecycle/duty.ts';
import type { Networks } from '../networks/networks.ts';
import type { OvsAffinity } from '../ovs-affinity/ovs-affinity.ts';
import type { VmPinning } from '../vm-pinning/vm-pinning.ts';
import type { NodeAgentConfig } from './config.ts';

export interface AgentParts extends Services {
  readonly config: NodeAgentConfig;
  /** The bearer token for the API server, which the kubelet accepts, too. */
  readonly token: () => string | undefined;
  /** The file that contains it, if the kubeconfig names one. */
  readonly tokenFile: string | undefined;
  readonly gateProgram: string;
  /** The names of duties that have failed and not worked steadily since. */
  readonly failures: Problems;
  /** State files that cannot be read or written, by path. */
  readonly unsaved: Problems;
}

/**
 * Resolves when nothing that can be moved is on the CPUs: threads of Open vSwitch and, with `--interrupts move`, work of
 * the kernel. @throws Error after 2 s
 */
export type Vacate = (cpus: CpuSet, signal: AbortSignal) => Promise<void>;

/** What the node is read from. */
export interface HostSources {
  readonly runs: KubeletRuns;
  readonly assignments: Assignments;
  readonly networks: Networks;
  readonly refusals: RefusedStarts;
  readonly kubeletConfig: () => Promise<KubeletConfigReading>;
}

export interface HostParts extends HostSources {
  readonly ovs: OvsAffinity | undefined;
  /** Daemons of Open vSwitch that do not answer; undefined if this host runs none. */
  readonly ovsSilence: Problems | undefined;
  readonly vms: Pick<VmPinning, 'pinning' | 'subscribe'> | undefined;
  readonly vacate: Vacate;
  /** Undefined with --interrupts off. */
  readonly interference: Pick<Interference, 'disturbed' | 'subscribe'> | undefined;
}
