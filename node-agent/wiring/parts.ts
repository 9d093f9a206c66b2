import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Assignments } from '../assignments/assignments.ts';
import type { NearResources } from '../device-plugin/near-resources.ts';
import type { RefusedStarts } from '../device-plugin/refused-starts.ts';
import type { HostFactsReader } from '../host/host-facts.ts';
import type { KubeletConfigReading } from '../host/kubelet-config-reader.ts';
import type { Failures } from '../lifecycle/failures.ts';
import type { Networks } from '../networks/networks.ts';
import type { OvsAffinity } from '../ovs-affinity/ovs-affinity.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import type { VmPinning } from '../vm-pinning/vm-pinning.ts';
import type { NodeAgentConfig } from './config.ts';

/** What every duty is made from. */
export interface AgentParts {
  readonly config: NodeAgentConfig;
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
  /** The bearer token of the API server, which the kubelet accepts too. */
  readonly token: () => string | undefined;
  /** The file that it is read from, if the kubeconfig names one. */
  readonly tokenFile: string | undefined;
  /** The program of the device plugin's thread. */
  readonly pluginProgram: string;
  /** Which duties failed and wait to be run again. */
  readonly failures: Failures;
}

/** What the duties of a node with a kubelet share. */
export interface HostParts {
  readonly facts: HostFactsReader;
  readonly assignments: Assignments;
  readonly networks: Networks;
  readonly ovs: OvsAffinity | undefined;
  /** Undefined where it is turned off. */
  readonly vms: VmPinning | undefined;
  /** Containers that were kept from starting. */
  readonly refusals: RefusedStarts;
  /** The resources by which pods prefer a network. */
  readonly near: NearResources;
  readonly kubeletConfig: () => Promise<KubeletConfigReading>;
}
