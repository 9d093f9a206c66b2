import { nodeTopology } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS, NODE_TOPOLOGIES } from '../../sandbox/api-server/built-in-types.ts';
import { drawCpuMap } from '../support/cpu-map.ts';
import type { Line } from '../support/terminal.ts';
import type { DemoCluster } from './cluster.ts';
import type { DemoContext } from './context.ts';
import { DEMO_NODES } from './nodes.ts';
import { localnet } from './objects.ts';
import { computeOf, createVm, eventsOf, untilRunning } from './pods.ts';
import { expect, until } from './until.ts';

export const FORWARDER = 'forwarder';

/**
 * Webhook, extender and kubelet in turn: the launcher is padded, scheduled to the node of its physnet, and runs on that
 * physnet's NUMA node.
 */
export async function paddedAndPlaced({ cluster, printer }: DemoContext) {
  await cluster.client.create(NETWORK_ATTACHMENT_DEFINITIONS, localnet('dataplane', 'physnet1'));
  const created = await createVm(cluster, { name: FORWARDER, annotated: true, network: 'dataplane' });
  const { requests, limits } = computeOf(created);
  printer.lines([
    `webhook:  CPUs ${limits['cpu']}, asks for ${Object.keys(limits)
      .filter((name) => name.includes('plumbline'))
      .join(', ')}`,
    `          ${created.metadata.annotations?.[DECISION_ANNOTATION] ?? 'no decision'}`,
  ]);
  expect(limits['cpu'] === '10' && requests['cpu'] === '10', `expected 10 CPUs, saw ${limits['cpu']}`);
  expect(limits['physnet.plumbline.dev/physnet1'] === '1', 'expected a request for physnet.plumbline.dev/physnet1');

  const pod = await untilRunning(cluster, FORWARDER, 15);
  const node = pod.spec.nodeName ?? '';
  const cpus = await until('the report to show its CPUs', 10, () =>
    reportedCpus(cluster, node, pod.metadata.uid ?? ''),
  );
  const { host } = cluster.node(node);
  const cells = host.cells.filter((cell) => cell.cpus.intersects(cpus)).map(({ id }) => id);
  printer.lines([`scheduler: node ${node}; kubelet: CPUs ${cpus} on NUMA node ${cells.join(',')}`, '']);
  printer.lines(drawNode(cluster, node, cpus));
  expect(node === 'numa1', `expected node numa1, which alone has physnet1, saw ${node}`);
  expect(cells.join() === '1', `expected NUMA node 1, where physnet1 is, saw ${cells.join()}`);
  expect(
    host.cores.every((core) => !core.intersects(cpus) || core.isSubsetOf(cpus)),
    `CPUs ${cpus} are not whole cores`,
  );
  const padded = await until('an Event on the VMI about the padding', 10, () =>
    eventsOf(cluster, FORWARDER).find(({ reason }) => reason === 'PaddedToWholeCores'),
  );
  return { node, cpus: cpus.toString(), cells, event: padded.message, requests };
}

/** The CPUs that the node's agent reports for a pod. */
export function reportedCpus(cluster: DemoCluster, node: string, uid: string): CpuSet | undefined {
  const { status } = nodeTopology.parse(cluster.client.get(NODE_TOPOLOGIES, undefined, node));
  const found = status?.assignments.find(({ podUID }) => podUID === uid);
  return found && CpuSet.parse(found.cpus);
}

function drawNode(cluster: DemoCluster, name: string, cpus: CpuSet): Line[] {
  const { host } = cluster.node(name);
  const reserved = host.cores[0] ?? CpuSet.EMPTY;
  const physnets = Object.entries(DEMO_NODES.find((node) => node.name === name)?.physnets ?? {});
  const cellLabels = new Map(physnets.flatMap(([physnet, cells]) => cells.map((cell) => [cell, physnet] as const)));
  return drawCpuMap({
    host,
    cellLabels,
    owners: [
      { mark: 'R', label: 'reserved for the system', cpus: reserved, style: 'dim' },
      { mark: 'V', label: FORWARDER, cpus, style: 'green' },
    ],
  });
}
