import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { AGENT_LEASE_PREFIX } from '../../model/lease/agent-health.ts';
import { NAMESPACE } from '../../model/names.ts';
import { cellOf, type Fleet, hostOf, PHYSNETS, reservedOf } from './fleets.ts';
import { countedDevices, type KubeletNode } from './kubelets.ts';
import { RESOURCE_TOPOLOGIES, resourceTopologyOf } from './resource-topology.ts';

/** A daemon on each node that reports its kubelet's state to the API server. */
export interface Publisher {
  /** Publishes the state before the first VM. */
  start(nodes: readonly KubeletNode[]): Promise<void>;
  changed(node: KubeletNode): void;
  stop(): Promise<void>;
}

interface PublisherOptions {
  readonly publish: (node: KubeletNode, first: boolean) => Promise<void>;
  /** Seconds from a change to its publication, and the shortest time between two publications. */
  readonly reaction: number;
  readonly least: number;
  /** Seconds between unconditional publications. */
  readonly every?: { readonly seconds: number; readonly publish: (node: KubeletNode) => Promise<void> };
  readonly onFault: (error: unknown) => void;
}

/** No reports: kube-scheduler only uses Nodes. */
export const NO_PUBLISHER: Publisher = {
  start: async () => undefined,
  changed: () => undefined,
  stop: async () => undefined,
};

/** Seconds until an agent detects a change of the kubelet's state file, by inotify. */
const AGENT_REACTION = 0.05;
const AGENT_LEAST = 0.05;
const HEARTBEAT = { interval: 10, duration: 40 };
/**
 * As configured by the NUMA Resources Operator for the exporter: on a change of the kubelet's state, at most once a
 * second, and every 10 s.
 */
const EXPORTER = { reaction: 0.05, least: 1, every: 10 };

const REPORT = { apiVersion: NODE_TOPOLOGY_API.apiVersion, kind: NODE_TOPOLOGY_API.kind };
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

/** The reports and Leases of Plumbline's agents. */
export function agentReports(client: KubeClient, fleet: Fleet, onFault: (error: unknown) => void): Publisher {
  const { cells, cores } = hostOf(fleet);
  const fixed = {
    cells: [...cells],
    cores: [...cores],
    reserved: reservedOf(fleet),
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: fleet.policy, scope: 'container' },
    physnets: PHYSNETS.map((name) => ({ name, cells: `${cellOf(name, fleet)}` })),
  };
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
  const renewTime = () => new Date().toISOString().replace('Z', '000Z');
  const beat = ({ name }: KubeletNode) =>
    client
      .patch(`${leases}/${AGENT_LEASE_PREFIX}${name}`, 'application/merge-patch+json', {
        spec: { renewTime: renewTime(), holderIdentity: name },
      })
      .then(() => undefined);
  return createPublisher({
    async publish({ name, settings, state }, first) {
      const assignments = [...state.assignments].flatMap(([podUID, containers]) =>
        [...containers].map(([container, cpus]) => ({ podUID, container, cpus: cpus.toString() })),
      );
      if (first) {
        await client.create(leases, {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: AGENT_LEASE_PREFIX + name },
          spec: { holderIdentity: name, leaseDurationSeconds: HEARTBEAT.duration, renewTime: renewTime() },
        });
      }
      if (first) await client.create(REPORTS, { ...REPORT, metadata: { name } });
      const status = { ...fixed, kubeletVersion: settings.version, assignments, devices: countedDevices(state) };
      await client.patch(`${REPORTS}/${name}/status`, 'application/merge-patch+json', { status });
    },
    reaction: AGENT_REACTION,
    least: AGENT_LEAST,
    every: { seconds: HEARTBEAT.interval, publish: beat },
    onFault,
  });
}

/** The NodeResourceTopology objects from an updater on each node. */
export function resourceTopologies(client: KubeClient, onFault: (error: unknown) => void): Publisher {
  const write = async (node: KubeletNode) => {
    const { apiVersion, kind, metadata, ...rest } = resourceTopologyOf(node);
    await client.patch(`${RESOURCE_TOPOLOGIES}/${metadata.name}`, 'application/merge-patch+json', rest);
  };
  return createPublisher({
    publish: async (node, first) => {
      if (first) await client.create(RESOURCE_TOPOLOGIES, resourceTopologyOf(node));
      else await write(node);
    },
    ...EXPORTER,
    every: { seconds: EXPORTER.every, publish: write },
    onFault,
  });
}

function createPublisher({ publish, reaction, least, every, onFault }: PublisherOptions): Publisher {
  const ended = new AbortController();
  // Every wait listens to it.
  setMaxListeners(0, ended.signal);
  /** Nodes with unpublished changes, and the callbacks that wait for a change. */
  const changed = new Set<string>();
  const wake = new Map<string, () => void>();
  const loops: Promise<void>[] = [];
  const pause = (seconds: number) => delay(seconds * 1000, undefined, { signal: ended.signal }).catch(() => undefined);

  const follow = async (node: KubeletNode) => {
    while (!ended.signal.aborted) {
      if (!changed.has(node.name)) await new Promise<void>((resolve) => wake.set(node.name, resolve));
      if (ended.signal.aborted) return;
      await pause(reaction);
      changed.delete(node.name);
      await publish(node, false).catch(onFault);
      await pause(least);
    }
  };
  const repeat = async (node: KubeletNode, index: number, of: number) => {
    if (every === undefined) return;
    await pause((every.seconds * index) / of);
    while (!ended.signal.aborted) {
      await every.publish(node).catch(onFault);
      await pause(every.seconds);
    }
  };
  return {
    async start(nodes) {
      for (const node of nodes) await publish(node, true);
      for (const [index, node] of nodes.entries()) loops.push(follow(node), repeat(node, index, nodes.length));
    },
    changed({ name }) {
      changed.add(name);
      wake.get(name)?.();
    },
    async stop() {
      ended.abort();
      for (const one of wake.values()) one();
      await Promise.all(loops);
    },
  };
}
