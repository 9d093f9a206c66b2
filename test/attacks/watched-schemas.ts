import * as z from 'zod';
import { resourceSlice, watchedDeployment } from '../../console/server/cluster.ts';
import { watchedPod } from '../../console/server/pods.ts';
import { watchedInstance, watchedMachine } from '../../console/server/vms.ts';
import { nodeTopologyStatus } from '../../kube/node-topology.ts';
import { lease, networkAttachmentDefinition, node, objectMeta } from '../../kube/resources.ts';
import { startedInstance, virtualMachine, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { launcherPodSchema } from '../../node-agent/vm-pinning/launchers.ts';
import { resourceSlice as cpuSlice } from '../../scheduler-plugin/cluster/cluster.ts';
import { observedPod } from '../../scheduler-plugin/cluster/pod-view.ts';
import { schedulingPod } from '../../scheduler-plugin/extender/args.ts';
import { namespaceSchema, subnet, vlan } from '../../webhook/cluster/cluster-view.ts';
import { observedNode } from '../../webhook/cluster/node-cache.ts';

const topology = z.object({ metadata: objectMeta, status: nodeTopologyStatus });

/** The schema of each kind that a daemon watches, by daemon. */
export const WATCHED: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = {
  webhook: {
    namespaces: namespaceSchema,
    nodes: observedNode,
    topologies: topology,
    definitions: networkAttachmentDefinition,
    subnets: subnet,
    vlans: vlan,
    VMIs: virtualMachineInstance,
  },
  extender: {
    nodes: node,
    pods: observedPod,
    topologies: topology,
    leases: lease,
    resourceSlices: cpuSlice,
    VMIs: startedInstance,
    VMs: virtualMachine,
    // Not watched: the pod in a call of kube-scheduler.
    filter: z.object({ Pod: schedulingPod }),
  },
  agent: { launchers: launcherPodSchema },
  console: {
    topologies: topology,
    nodes: node,
    pods: watchedPod,
    leases: lease,
    VMIs: watchedInstance,
    VMs: watchedMachine,
    deployments: watchedDeployment,
    resourceSlices: resourceSlice,
  },
};
