import type { KubeClient } from '../kube/client.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus, nodeTopology } from '../kube/node-topology.ts';
import { createReflector } from '../kube/reflector.ts';
import { lease, node as nodeSchema, type Pod, pod as podSchema } from '../kube/resources.ts';
import { PlumblineError } from '../model/errors.ts';
import { DPU_HOST_LABEL, DPU_LEASE_PREFIX } from '../model/names.ts';
import { type PlacementHost, preparedHost } from '../model/placement/needs.ts';
import type { Logger } from '../runtime/log.ts';
import type { LeaseView } from './dpu-health.ts';
import { type PodNeeds, podNeedsOf } from './pod-needs.ts';

/** A pod that is on a node and holds exclusive CPUs there, or will in a moment. */
export interface BoundPod {
  readonly uid: string;
  readonly node: string;
  readonly needs: PodNeeds;
}

/** The cluster as the watches show it. Listeners are called after the view has changed. */
export interface Cluster {
  run(signal: AbortSignal): Promise<void>;
  /** What has not come in yet, in words; undefined when all has. */
  readonly missing: string | undefined;
  /** Undefined for a node that has not reported, or whose report contradicts itself. */
  host(node: string): PlacementHost | undefined;
  /** Running or starting pods with exclusive CPUs on a node. */
  boundPods(node: string): readonly BoundPod[];
  isDpuHost(node: string): boolean;
  /** Leases of DPUs by node name. */
  readonly dpuLeases: ReadonlyMap<string, LeaseView>;
}

export interface ClusterListeners {
  /** A node's report or its pods changed. */
  readonly nodeChanged: (node: string) => void;
  readonly dpuLeaseChanged: (node: string, view: LeaseView | undefined) => void;
  readonly podSettled: (uid: string) => void;
}

export interface ClusterOptions {
  readonly client: KubeClient;
  readonly dpuLeaseNamespace: string;
  readonly listeners: ClusterListeners;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

const TERMINAL = new Set(['Succeeded', 'Failed']);

export function createCluster({ client, dpuLeaseNamespace, listeners, log, now }: ClusterOptions): Cluster {
  const shared = { client, log, now };
  const onNode = new Map<string, Map<string, BoundPod>>();
  const leases = new Map<string, LeaseView>();

  const reports = createReflector({
    ...shared,
    path: `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`,
    schema: nodeTopology,
    project: ({ metadata, status }) => preparedOf(metadata.name ?? '', status, log),
    onChange: ({ key }) => listeners.nodeChanged(key),
  });
  const nodes = createReflector({
    ...shared,
    path: '/api/v1/nodes',
    schema: nodeSchema,
    project: ({ metadata }) => ({ dpuHost: metadata.labels?.[DPU_HOST_LABEL] !== undefined }),
  });
  const pods = createReflector({
    ...shared,
    path: '/api/v1/pods',
    schema: podSchema,
    project: boundPod,
    onChange: ({ before, after }) => {
      if (before !== undefined) onNode.get(before.node)?.delete(before.uid);
      if (after !== undefined) {
        const there = onNode.get(after.node) ?? new Map<string, BoundPod>();
        onNode.set(after.node, there.set(after.uid, after));
        listeners.podSettled(after.uid);
      }
      for (const node of new Set([before?.node, after?.node])) if (node !== undefined) listeners.nodeChanged(node);
    },
  });
  const dpus = createReflector({
    ...shared,
    path: `/apis/coordination.k8s.io/v1/namespaces/${dpuLeaseNamespace}/leases`,
    schema: lease,
    project: ({ metadata, spec }) => {
      const node = metadata.name?.startsWith(DPU_LEASE_PREFIX)
        ? metadata.name.slice(DPU_LEASE_PREFIX.length)
        : undefined;
      return node === undefined
        ? undefined
        : { node, renewTime: spec?.renewTime, duration: spec?.leaseDurationSeconds };
    },
    onChange: ({ before, after }) => {
      const node = (after ?? before)?.node ?? '';
      if (after === undefined) leases.delete(node);
      else leases.set(node, after);
      listeners.dpuLeaseChanged(node, after);
    },
  });
  const all = { reports, nodes, pods, 'DPU leases': dpus };

  return {
    async run(signal) {
      await Promise.all(Object.values(all).map((reflector) => reflector.run(signal)));
    },
    get missing() {
      const late = Object.entries(all).flatMap(([name, reflector]) => (reflector.synced ? [] : [name]));
      return late.length === 0 ? undefined : `not synced yet: ${late.join(', ')}`;
    },
    host: (name) => reports.items.get(name),
    boundPods: (name) => [...(onNode.get(name)?.values() ?? [])],
    isDpuHost: (name) => nodes.items.get(name)?.dpuHost ?? false,
    dpuLeases: leases,
  };
}

/** Undefined for a pod that holds no exclusive CPUs of any node: nearly all pods, of which nothing is kept. */
function boundPod(pod: Pod): BoundPod | undefined {
  const { nodeName } = pod.spec;
  const { uid } = pod.metadata;
  if (nodeName === undefined || uid === undefined || TERMINAL.has(pod.status?.phase ?? '')) return undefined;
  const needs = podNeedsOf(pod);
  return needs.request.containers.some(({ cpus }) => cpus > 0) ? { uid, node: nodeName, needs } : undefined;
}

function preparedOf(name: string, status: NodeTopologyStatus | undefined, log: Logger): PlacementHost | undefined {
  try {
    return status && preparedHost(status);
  } catch (err) {
    if (!(err instanceof PlumblineError)) throw err;
    log.warn({ err, node: name }, 'passed over a report that contradicts itself');
    return undefined;
  }
}
