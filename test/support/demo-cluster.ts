import type { DemoCluster } from '../../cli/demo/cluster.ts';
import type { DemoNode } from '../../cli/demo/nodes.ts';
import { NAMESPACES, NODE_TOPOLOGIES, NODES } from '../../sandbox/api-server/built-in-types.ts';
import { until } from './until.ts';

type Client = Pick<DemoCluster, 'client'>;

export async function createNamespaces({ client }: Client, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
}

/** Waits until every node has its report, and advertises its physnets. */
export async function untilReported(
  { client }: Client,
  nodes: readonly Pick<DemoNode, 'name' | 'physnets'>[],
): Promise<void> {
  for (const { name, physnets } of nodes) {
    await until(`the report of ${name}`, () => client.get(NODE_TOPOLOGIES, undefined, name)?.status);
    for (const physnet of Object.keys(physnets)) {
      await until(`${name} to advertise ${physnet}`, () => {
        const { allocatable = {} } = client.get(NODES, undefined, name)?.status ?? {};
        return (allocatable[`physnet.plumbline.dev/${physnet}`] ?? '0') !== '0';
      });
    }
  }
}
