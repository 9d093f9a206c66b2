import type { KubeClient } from '../../kube/client.ts';
import { pod as podSchema, virtualMachineInstance } from '../../kube/resources.ts';
import { explainedNode, isDpuDead } from '../explain/objects.ts';
import { readAgentLeases } from '../support/agents.ts';
import { notFound } from '../support/exit-status.ts';
import { hostsOf } from '../support/hosts.ts';
import { assertReported, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type Launched, type NodeView, viewOf } from './node-view.ts';

/** What is drawn, and what could not be. */
export interface TopView {
  readonly nodes: readonly NodeView[];
  readonly notes: readonly string[];
}

/**
 * Reads what `plumbline top` draws.
 * @param wanted names of nodes; none: all
 * @param now milliseconds since 1970
 * @throws CliError where Plumbline is not installed, or a node does not report; KubeError
 */
export async function readTop(client: KubeClient, wanted: readonly string[], now: number): Promise<TopView> {
  const [topologies, nodes, pods, vmis, agents] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, '/api/v1/nodes', explainedNode),
    readIfAllowed(client, '/api/v1/pods', podSchema, { labelSelector: 'kubevirt.io=virt-launcher' }),
    readIfAllowed(client, '/apis/kubevirt.io/v1/virtualmachineinstances', virtualMachineInstance),
    readAgentLeases(client, now),
  ]);
  assertReported(topologies);
  const names = new Set(topologies.map(({ metadata }) => metadata.name ?? ''));
  const absent = wanted.filter((name) => !names.has(name));
  if (absent.length > 0) {
    throw notFound(`node ${absent[0]} does not report its topology (kubectl get ntopo lists those that do)`);
  }
  const chosen =
    wanted.length === 0 ? topologies : topologies.filter(({ metadata }) => wanted.includes(metadata.name ?? ''));
  const { hosts, unusable } = hostsOf(chosen);
  const instances = new Map((vmis ?? []).map((vmi) => [vmi.metadata.uid ?? '', vmi]));
  const launched = new Map<string, Launched>();
  for (const { metadata } of pods ?? []) {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner?.kind !== 'VirtualMachineInstance') continue;
    launched.set(metadata.uid ?? '', { name: `${metadata.namespace}/${owner.name}`, vmi: instances.get(owner.uid) });
  }
  const known = new Map((nodes ?? []).map((node) => [node.metadata.name ?? '', node]));
  const remarksOf = (name: string) => [
    ...(nodes && !known.has(name) ? ['gone'] : []),
    ...(known.get(name)?.spec?.unschedulable ? ['cordoned'] : []),
    ...(agents?.silent.has(name) ? ['its agent is silent'] : []),
    ...(isDpuDead(known.get(name)) ? ['DPU not ready'] : []),
  ];
  return {
    nodes: hosts
      .map((host) => viewOf(host, launched, remarksOf(host.name)))
      .sort((a, b) => collator.compare(a.name, b.name)),
    notes: [
      ...[...unusable].map(([name, why]) => `${name} is not drawn: its report contradicts itself: ${why}`),
      ...(pods === undefined ? ['you may not read pods: launchers stand there instead of VMs'] : []),
    ],
  };
}

const collator = new Intl.Collator('en', { numeric: true });
