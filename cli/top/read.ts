import { hostsOf } from '../../diagnosis/hosts.ts';
import { deadDpuCondition, explainedNode, explainedPod, explainedVmi } from '../../diagnosis/objects.ts';
import { type VmState, vmState } from '../../diagnosis/state.ts';
import { instanceFacts, kindOf, nodeFacts } from '../../diagnosis/vm-facts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { byName } from '../../model/lists.ts';
import { notFound } from '../support/exit-status.ts';
import { assertReported, readAgentLeases, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type Launched, type NodeMap, type Remark, viewOf } from './node-view.ts';

/** The data to show, and notes about data that could not be read. */
export interface TopView {
  readonly nodes: readonly NodeMap[];
  readonly notes: readonly string[];
}

/**
 * Reads the data of `plumbline top`.
 * @param selection names of nodes; empty: all
 * @param now milliseconds since 1970
 * @throws CliError if Plumbline is not installed, or a node has no report; KubeError
 */
export async function readTop(client: KubeClient, selection: readonly string[], now: number): Promise<TopView> {
  const [topologies, nodes, pods, vmis, agents] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, '/api/v1/nodes', explainedNode),
    readIfAllowed(client, '/api/v1/pods', explainedPod, { labelSelector: 'kubevirt.io=virt-launcher' }),
    readIfAllowed(client, '/apis/kubevirt.io/v1/virtualmachineinstances', explainedVmi),
    readAgentLeases(client, now),
  ]);
  assertReported(topologies);
  const names = new Set(topologies.map(({ metadata }) => metadata.name ?? ''));
  const absent = selection.filter((name) => !names.has(name));
  if (absent.length > 0) {
    throw notFound(`node ${absent[0]} does not report its topology (kubectl get ntopo lists those that do)`);
  }
  const chosen =
    selection.length === 0 ? topologies : topologies.filter(({ metadata }) => selection.includes(metadata.name ?? ''));
  const { hosts, unusable } = hostsOf(chosen);
  const instances = new Map((vmis ?? []).map((vmi) => [vmi.metadata.uid ?? '', vmi]));
  const nodesByName = new Map((nodes ?? []).map((node) => [node.metadata.name ?? '', node]));
  const reported = new Map(hosts.map((host) => [host.name, host]));
  const launched = new Map<string, Launched>();
  for (const pod of pods ?? []) {
    const { metadata, spec } = pod;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner?.kind !== 'VirtualMachineInstance') continue;
    const vmi = instances.get(owner.uid);
    const { namespace = '' } = metadata;
    const at = spec.nodeName ?? '';
    const node = nodeFacts(pod, nodesByName.get(at), reported.get(at), agents?.silent.has(at) === true);
    const own = { namespace, name: owner.name, kind: kindOf(vmi), instance: vmi && instanceFacts(vmi) };
    const state: VmState = vmState({ ...own, pod, node });
    launched.set(metadata.uid ?? '', { name: `${namespace}/${owner.name}`, vmi, state });
  }
  const remarksOf = (name: string): Remark[] => [
    ...remarkIf(nodes !== undefined && !nodesByName.has(name), 'NodeGone', 'gone'),
    ...remarkIf(nodesByName.get(name)?.spec?.unschedulable === true, 'Cordoned', 'cordoned'),
    ...remarkIf(agents?.silent.has(name) === true, 'AgentSilent', 'its agent is silent'),
    ...remarkIf(deadDpuCondition(nodesByName.get(name)) !== undefined, 'DPUNotReady', 'DPU not ready'),
  ];
  return {
    nodes: hosts.map((host) => viewOf(host, launched, remarksOf(host.name))).sort(byName(({ name }) => name)),
    notes: [
      ...[...unusable].map(([name, why]) => `${name} is not shown: ${why}`),
      ...(pods === undefined ? ['you may not read pods: the map shows launchers instead of VMs'] : []),
    ],
  };
}

const remarkIf = (isTrue: boolean, reason: Remark['reason'], text: string): Remark[] =>
  isTrue ? [{ reason, text }] : [];
