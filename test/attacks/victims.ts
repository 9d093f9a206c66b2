import { createServer, type Server } from 'node:http';
import * as z from 'zod';
import { createCluster, resourceSlice } from '../../console/server/cluster.ts';
import { KINDS } from '../../console/server/kinds.ts';
import { watchedInstance } from '../../console/server/paused.ts';
import { watchedPod } from '../../console/server/pods.ts';
import type { KubeClient } from '../../kube/client.ts';
import { NODE_TOPOLOGY_API, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { lease, networkAttachmentDefinition, node, objectMeta } from '../../kube/resources.ts';
import { startedInstance, virtualMachine, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { launcherPod, watchLaunchers } from '../../node-agent/vm-pinning/launchers.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import {
  resourceSlice as cpuSlice,
  createCluster as createExtenderCluster,
} from '../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import { createMaskedVms } from '../../scheduler-plugin/cluster/masked-vms.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod } from '../../scheduler-plugin/cluster/pod-view.ts';
import { schedulingPod } from '../../scheduler-plugin/extender/args.ts';
import { createClusterView, namespaceSchema } from '../../webhook/cluster/cluster-view.ts';
import { subnet, vlan } from '../../webhook/cluster/network-context-cache.ts';
import { observedNode } from '../../webhook/cluster/node-cache.ts';
import { createVmiLookup } from '../../webhook/cluster/vmi-lookup.ts';
import { NO_LISTENERS } from '../scheduler-plugin/cluster/no-listeners.ts';
import { silent } from '../support/logger.ts';
import { vector } from '../support/vectors.ts';
import { kindOf, mutationOf, podVector, requestFor } from '../webhook/launcher-fixture.ts';
import { attacksOn } from './hostile-objects.ts';

/** The caches of a daemon, and the schema of each kind that it watches, by path. */
export interface Victim {
  readonly schemas: Readonly<Record<string, z.ZodType>>;
  /** @returns whether the object of an innocent tenant is served; called when every list has been read */
  start(
    client: KubeClient,
    signal: AbortSignal,
  ): { readonly synced: () => boolean; readonly served: () => Promise<boolean> };
}

const TOPOLOGIES = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const VMIS = '/apis/kubevirt.io/v1/virtualmachineinstances';
const PODS = '/api/v1/pods';
const now = monotonicSeconds;
const topology = z.object({ metadata: objectMeta, status: nodeTopologyStatus });

const NAMESPACE = 'telco-east';
/** The VMI and launcher of an innocent tenant, at the end of each list. */
const innocentVmi = vector<{ metadata: { annotations?: object } }>('vmi.json');
innocentVmi.metadata.annotations = {
  ...innocentVmi.metadata.annotations,
  [PAUSED_START_ANNOTATION]: '{"state":"waiting"}',
};
const innocentPod = podVector();
Object.assign(innocentPod.metadata, { namespace: NAMESPACE, name: 'launcher', uid: 'launcher' });

export const VICTIMS: Readonly<Record<string, Victim>> = {
  webhook: {
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
  },
  'scheduler-plugin': {
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
      let isServed = false;
      const onInstance = (key: string) => {
        isServed ||= key.startsWith(NAMESPACE);
      };
      const common = { client, log: silent, now };
      const vms = createMaskedVms({ ...common, onInstance });
      const cluster = createExtenderCluster({
        ...common,
        state: new ClusterState(NO_LISTENERS, silent),
        reader: createNeedsReader('all'),
        dpuLeaseNamespace: 'ovn',
        dpuLeaseChanged: () => undefined,
        agentsSilent: () => undefined,
        pinningReported: () => undefined,
      });
      void vms.run(signal);
      void cluster.run(signal);
      return {
        synced: () => cluster.missing === undefined && isServed,
        served: async () => cluster.pods.has(`${NAMESPACE}/launcher`),
      };
    },
  },
  'node-agent': {
    schemas: { [PODS]: launcherPod },
    start(client, signal) {
      const launchers = watchLaunchers({ client, nodeName: 'n', onChange: () => undefined, log: silent });
      void launchers.run(signal);
      const key = `${NAMESPACE}/launcher`;
      return { synced: () => launchers.synced, served: async () => launchers.items.get(key) !== undefined };
    },
  },
  console: {
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
      const listeners = {
        node: () => undefined,
        pod: (_before: unknown, after: { readonly namespace: string } | undefined) =>
          void pods.add(after?.namespace ?? ''),
      };
      const cluster = createCluster({ client, without: new Set(), listeners, log: silent, now });
      void cluster.run(signal);
      return { synced: () => cluster.missing === undefined, served: async () => pods.has(NAMESPACE) };
    },
  },
};

/** Between two attacks in a list: fewer objects than attacks are attacks of all kinds. */
const STRIDE = 7;

/**
 * An API server whose lists have so many hostile objects of each kind, each attack in turn, and at the end the object of
 * an innocent tenant.
 */
export function hostileApi(schemas: Victim['schemas'], count: number): Server {
  const attacks = new Map(Object.entries(schemas).map(([path, schema]) => [path, attacksOn(schema)] as const));
  return createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api');
    if (searchParams.has('watch')) {
      response.writeHead(200).flushHeaders();
      return;
    }
    const innocent: Record<string, object | undefined> = { [VMIS]: innocentVmi, [PODS]: innocentPod };
    const ofKind = attacks.get(pathname) ?? [];
    const total = ofKind.length === 0 ? 0 : count;
    const from = Number(searchParams.get('continue') ?? 0);
    const to = Math.min(from + Number(searchParams.get('limit')), total);
    const texts: string[] = [];
    // The client refuses a page of more bytes.
    for (let i = from, bytes = 0; i < to && bytes < 3_000_000; i++) {
      const { metadata, ...base } = (innocent[pathname] ?? {}) as { metadata?: object };
      const own = { namespace: 'mallory', name: `hostile-${i}`, uid: `hostile-${i}` };
      const text = ofKind[(i * STRIDE) % ofKind.length]?.json({ ...base, metadata: { ...metadata, ...own } }) ?? '';
      bytes += text.length;
      texts.push(text);
    }
    if (to === total && innocent[pathname] !== undefined) texts.push(JSON.stringify(innocent[pathname]));
    const page = { resourceVersion: '1', continue: to < total ? String(to) : '' };
    response.end(`{"metadata":${JSON.stringify(page)},"items":[${texts.join(',')}]}`);
  });
}
