import { createCluster, resourceSlice } from '../../../console/server/cluster.ts';
import { KINDS } from '../../../console/server/kinds.ts';
import { watchedInstance, watchedPod } from '../../../console/server/pods.ts';
import { lease, node } from '../../../kube/resources.ts';
import { monotonicSeconds as now } from '../../../runtime/time.ts';
import { silent } from '../../support/logger.ts';
import { NAMESPACE, topology, type Victim } from '../victim.ts';

export const victim: Victim = {
  schemas: {
    [KINDS.nodetopologies.path]: topology,
    [KINDS.nodes.path]: node,
    [KINDS.pods.path]: watchedPod,
    [KINDS.leases.path]: lease,
    [KINDS.virtualmachineinstances.path]: watchedInstance,
    [KINDS.resourceslices.path]: resourceSlice,
  },
  start(client, signal) {
    const pods = new Set<string>();
    const feed = {
      nodeChanged: () => undefined,
      podChanged: (_before: unknown, after: { readonly namespace: string } | undefined) =>
        void pods.add(after?.namespace ?? ''),
    };
    const cluster = createCluster({ client, without: new Set(), feed, log: silent, now });
    void cluster.run(signal);
    return { synced: () => cluster.missing === undefined, served: async () => pods.has(NAMESPACE) };
  },
};
