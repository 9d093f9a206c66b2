import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sidecarConfiguration } from '../../cli/demo/cluster.ts';
import { startDaemon } from '../../cli/demo/daemons.ts';
import { createKubeClient, type KubeClient } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { CHECKPOINT_FILE, parseCheckpoint } from '../../node-agent/assignments/checkpoint.ts';
import { BUILT_IN_TYPES, LEASES, NODES, PODS } from '../../sandbox/api-server/built-in-types.ts';
import { createEmulatedNode, type EmulatedNode } from '../../sandbox/cluster/emulated-node.ts';
import { startControlPlane } from '../../test/real/control-plane.ts';
import { objectsOf, render } from '../../test/real/install/rendered.ts';
import { report } from '../../test/real/scheduler/stage.ts';
import { root } from '../../test/support/bundles.ts';
import { silent } from '../../test/support/logger.ts';
import { createRemoteClient } from '../../test/support/remote-client.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';

/**
 * A real control plane with both schedulers, the extender, and nodes whose kubelets admit pods as the real one does.
 */
export interface RaceCluster {
  readonly client: KubeClient;
  stop(): Promise<void>;
}

/** Two sockets of eight cores with two threads: 32 CPUs, of which one core is reserved. */
const HOST = { sockets: 2, coresPerSocket: 8 };
export const FREE_CPUS = 30;
/** Milliseconds between two reads of a kubelet's checkpoint, which an agent watches by inotify. */
const LOOK = 50;

export async function startRaceCluster(nodes: number, onFault: (error: unknown) => void): Promise<RaceCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'races-'));
  const stops: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const one of stops.toReversed()) await one();
  };
  try {
    const plane = await startControlPlane({
      apiServerArgs: ['--disable-admission-plugins=ServiceAccount,TaintNodesByCondition'],
    });
    stops.push(plane.stop);
    await plane.create(
      ...['plumbline-system', 'ovn-kubernetes', 'kube-node-lease'].map((name) => ({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      })),
      ...objectsOf(render('base/crd')),
    );
    const kube = createKubeClient(kubeconfigAccess(plane.adminKubeconfig), 'races-kubelets');
    stops.push(() => kube.close());
    const types = BUILT_IN_TYPES.filter(({ plural }) => [PODS, LEASES, NODES].some((type) => type.plural === plural));
    const remote = createRemoteClient({ client: kube, types, log: silent });
    await remote.start();
    stops.push(async () => remote.close());
    const reporting = new AbortController();
    for (let i = 0; i < nodes; i++) {
      const name = `node-${i}`;
      const node = createEmulatedNode(
        { name, host: hostOf() },
        { directory: join(directory, name), client: remote, onFault },
      );
      await node.start();
      stops.push(() => node.stop());
      void reportNode(plane.client, node, reporting.signal).catch(onFault);
    }
    stops.push(async () => reporting.abort());
    const extender = startDaemon({
      name: 'extender',
      program: join(root, 'dist/scheduler-plugin.cjs'),
      args: [
        ...['--mode', 'sidecar', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'],
        ...['--kubeconfig', plane.adminKubeconfig],
      ],
      directory,
      env: shippedNodeOptions('scheduler-plugin'),
    });
    stops.push(() => extender.stop());
    await extender.ready();
    const configuration = await sidecarConfiguration(root, (await extender.ports()).port);
    const backoff = { podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 2 };
    await plane.startScheduler({ ...configuration, ...backoff }, { kubeconfig: plane.adminKubeconfig });
    await plane.startScheduler({ ...backoff, profiles: [{ schedulerName: 'default-scheduler' }] });
    return { client: plane.client, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A host. CPUs of a NUMA node: the first threads of its cores, then the second ones. */
function hostOf() {
  const { sockets, coresPerSocket } = HOST;
  const cores = sockets * coresPerSocket;
  const cells = Array.from({ length: sockets }, (_, id) => {
    const first = id * coresPerSocket;
    const last = first + coresPerSocket - 1;
    return { id, cpus: `${first}-${last},${first + cores}-${last + cores}` };
  });
  return { cells, cores: Array.from({ length: cores }, (_, core) => `${core},${core + cores}`) };
}

/** Reports the kubelet's assignments whenever they change, as an agent does. */
async function reportNode(client: KubeClient, node: EmulatedNode, signal: AbortSignal): Promise<void> {
  const { cells, cores } = hostOf();
  const file = join(node.kubeletDirectory, CHECKPOINT_FILE);
  let last: string | undefined;
  while (!signal.aborted) {
    const text = readFileSync(file, 'utf8');
    if (text !== last) {
      const { entries } = parseCheckpoint(text);
      await report(client, node.name, {
        kubeletVersion: 'v1.36.0',
        cells,
        cores,
        reserved: cores[0] ?? '',
        cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
        topologyManager: { policy: 'best-effort' },
        assignments: entries.map(({ podUID, container, cpus }) => ({ podUID, container, cpus: cpus.toString() })),
      });
      last = text;
    }
    await delay(LOOK, undefined, { signal }).catch(() => undefined);
  }
}
