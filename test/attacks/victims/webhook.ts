import { networkAttachmentDefinition } from '../../../kube/resources.ts';
import { virtualMachineInstance } from '../../../kube/virtual-machines.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { monotonicSeconds as now } from '../../../runtime/time.ts';
import { createVmiLookup } from '../../../webhook/cluster/cluster-facts.ts';
import { createClusterView, namespaceSchema, subnet, vlan } from '../../../webhook/cluster/cluster-view.ts';
import { observedNode } from '../../../webhook/cluster/node-cache.ts';
import { silent } from '../../support/logger.ts';
import { kindOf, mutationOf, podVector, requestFor } from '../../webhook/launcher-fixture.ts';
import { TOPOLOGIES, topology, type Victim, VMIS } from '../victim.ts';

export const victim: Victim = {
  schemas: {
    '/api/v1/namespaces': namespaceSchema,
    '/api/v1/nodes': observedNode,
    [TOPOLOGIES]: topology,
    '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions': networkAttachmentDefinition,
    '/apis/kubeovn.io/v1/subnets': subnet,
    '/apis/kubeovn.io/v1/vlans': vlan,
    [VMIS]: virtualMachineInstance,
  },
  start(client, signal) {
    const view = createClusterView({ ...EMPTY_CONTEXT }, { client, log: silent, now });
    void view.run(signal);
    const lookUpVmi = createVmiLookup({ client, timeout: 1, now, find: view.findVmi });
    const kinds = [kindOf(2)];
    const review = mutationOf({ lookUpVmi, view: { ...view, candidates: () => kinds, nodeKinds: () => kinds } });
    return {
      synced: () => view.problem === undefined,
      served: async () => (await review(requestFor(podVector()))).allowed,
    };
  },
};
