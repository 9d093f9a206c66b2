import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import type { NodeGroup } from './groups.ts';

const ANNOTATE = `annotate the VM’s template with ${FULL_PCPUS_ANNOTATION}: ${FULL_PCPUS_ONLY} and start it anew`;

type Remedy = (group: NodeGroup) => string | undefined;

const nearest = ({ nodes, missing }: NodeGroup) =>
  missing === undefined ? `on a node such as ${nodes[0]}` : `on ${nodes[0]}, which is short of ${missing}`;

/** What somebody could do so that nodes of a group take the pod. */
/** What is not listed has no remedy of its own. */
const REMEDIES: Partial<Readonly<Record<NodeGroup['kind'], Remedy>>> = {
  'in-flight': () => 'wait: pods on their way to these nodes are about to start, or their promises run out',
  'owner-backoff': () => 'find out why kubelets refused the last pods (events of the VM); it is tried again by itself',
  'refused-on-host': ({ nodes }) =>
    `see the event of the refused pod on ${nodes[0]}; it is tried again after the next report`,
  'short-of': ({ nodes, detail }) => `free ${detail.split(':')[0]} on ${nodes[0]}`,
  'too-few-whole-cores': (group) =>
    `free whole cores ${nearest(group)}: stop or migrate a VM there (plumbline top shows whose they are)`,
  'too-few-cpus': (group) =>
    `free CPUs ${nearest(group)}: stop or migrate a VM there (plumbline top shows whose they are)`,
  'network-elsewhere': (group) =>
    `free cores near the network ${nearest(group)}, or let the VM be farther away: ${NUMA_AFFINITY_ANNOTATION}: '{"<interface>":"preferred"}'`,
  'no-common-node': () =>
    'ask for fewer CPUs or less memory than one NUMA node has, or use nodes with a laxer topologyManagerPolicy',
  resources: ({ nodes }) => `free what is short on ${nodes[0]} (memory, huge pages or devices)`,
  misaligned: () => `have the launcher ask for whole cores: ${ANNOTATE}`,
  'cannot-split': () => `make all but one of its networks "preferred" (${NUMA_AFFINITY_ANNOTATION})`,
  'may-not-span': () =>
    `make all but one of its networks "preferred" (${NUMA_AFFINITY_ANNOTATION}), or give the guest more CPUs than fit on one NUMA node`,
  'larger-than-cells': ({ nodes, missing }) =>
    `give the VM ${missing} CPUs less (on ${nodes[0]}), NUMA nodes of its own (guestMappingPassthrough), or make its networks "preferred" (${NUMA_AFFINITY_ANNOTATION})`,
  dpu: ({ nodes }) =>
    `bring the DPU of ${nodes[0]} back: its power, its Open vSwitch, the agent on it (plumbline doctor)`,
  'polled-cpus': ({ nodes }) => `put the CPUs of pmd-cpu-mask into reservedSystemCPUs of the kubelet on ${nodes[0]}`,
  'hints-unserved': ({ nodes }) =>
    `start the agent on ${nodes[0]} again: its kubelet has no near.plumbline.dev device left`,
  'stale-report': ({ nodes }) => `start the agent on ${nodes[0]} again: it has stopped reporting`,
  'no-report': ({ nodes }) => `run the agent on ${nodes[0]}: it does not report`,
  unpredictable: ({ nodes }) => `use a kubelet version and options that are foretold on ${nodes[0]} (plumbline doctor)`,
  'cpu-mask': () =>
    'change the VM’s plumbline.dev/cpu-mask: it names CPUs that the node does not have or keeps for itself',
  cordoned: ({ nodes }) => `kubectl uncordon ${nodes[0]}`,
  'not-ready': ({ nodes }) => `bring ${nodes[0]} back: kubectl describe node ${nodes[0]}`,
  'no-whole-cores': ({ nodes }) => `reserve whole cores (reservedSystemCPUs) on ${nodes[0]}`,
  'no-exclusive-cpus': ({ nodes }) => `set cpuManagerPolicy: static on ${nodes[0]}`,
  'dra-cpu': ({ nodes }) => `remove dra-driver-cpu from ${nodes[0]}, or keep such pods off it`,
  tainted: ({ nodes }) => `tolerate the taint of ${nodes[0]}, or remove it`,
};

/** At most so many pieces of advice: who gets a page of them reads none. */
const MOST = 3;

/** What would help, the likeliest first. Where all nodes were never meant for the pod, that is said. */
export function remediesOf(groups: readonly NodeGroup[]): string[] {
  const found = groups.map((group) => REMEDIES[group.kind]?.(group)).filter((text) => text !== undefined);
  if (found.length > 0) return [...new Set(found)].slice(0, MOST);
  if (groups.some(({ kind }) => kind === 'fits')) return [];
  const [network, unselected] = ['no-such-network', 'not-selected'].map((kind) =>
    groups.find((one) => one.kind === kind),
  );
  if (network)
    return [`check the network’s name: ${network.text.replace(' on the node', ' on any node that the pod may go to')}`];
  if (unselected) return [`change the pod’s selector, or label a node: ${unselected.text}`];
  return [];
}
