import * as z from 'zod';
import { lease, node } from '../../../kube/resources.ts';
import { startedInstance, virtualMachine } from '../../../kube/virtual-machines.ts';
import { tuneGarbageCollection } from '../../../runtime/daemon.ts';
import { monotonicSeconds as now } from '../../../runtime/time.ts';
import { resourceSlice as cpuSlice, Cluster as ExtenderCluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { createMaskedVms } from '../../../scheduler-plugin/cluster/masked-vms.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { schedulingPod } from '../../../scheduler-plugin/extender/args.ts';
import { silent } from '../../support/logger.ts';
import { NAMESPACE, PODS, TOPOLOGIES, topology, type Victim, VMIS } from '../victim.ts';

export const victim: Victim = {
  schemas: {
    '/api/v1/nodes': node,
    [PODS]: observedPod,
    [TOPOLOGIES]: topology,
    '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases': lease,
    '/apis/resource.k8s.io/v1/resourceslices': cpuSlice,
    [VMIS]: startedInstance,
    '/apis/kubevirt.io/v1/virtualmachines': virtualMachine,
    // Not watched: the pod in a call of kube-scheduler.
    '/filter': z.object({ Pod: schedulingPod }),
  },
  start(client, signal) {
    tuneGarbageCollection();
    let isServed = false;
    const onInstance = (key: string) => {
      isServed ||= key.startsWith(NAMESPACE);
    };
    const common = { client, log: silent, now };
    const vms = createMaskedVms({ ...common, onInstance });
    const cluster = new ExtenderCluster({
      ...common,
      state: new ClusterState(silent),
      reader: new NeedsReader('all'),
      dpuLeaseNamespace: 'ovn',
    });
    void vms.run(signal);
    void cluster.run(signal);
    return {
      synced: () => cluster.missing === undefined && isServed,
      served: async () => cluster.pods.has(`${NAMESPACE}/launcher`),
    };
  },
};
