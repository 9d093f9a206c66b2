import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { PODS } from '../api-server/built-in-types.ts';
import type { LocalChange, LocalClient } from '../clients/local-client.ts';
import { RenewedLease } from '../clients/renewed-lease.ts';
import type { Pod } from '../objects.ts';
import { createDevicePlugins } from './device-plugins.ts';
import { type KubeletSettings, kubeletConfiguration, type Managers, openManagers } from './managers.ts';
import { type NodeFacts, publishNode } from './node-object.ts';
import { createPodLedger, type PodLedger } from './pod-ledger.ts';
import { createPodResources } from './pod-resources.ts';
import { type Containers, createPodWorker, NO_CONTAINERS } from './pod-worker.ts';

interface KubeletOptions {
  readonly name: string;
  readonly settings: KubeletSettings;
  /** The kubelet's root directory. Keep the path short: Unix socket paths are limited to 107 bytes. */
  readonly directory: string;
  readonly client: LocalClient;
  /** Labels of the Node in addition to those of every emulated node. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Resources other than CPUs and plugins' devices. Default: 64Gi of memory, KubeVirt's kvm and tun. */
  readonly resources?: Readonly<Record<string, string>>;
  /** Default: containers run nothing. */
  readonly containers?: Containers;
  /** Seconds between attempts to create a container. Default 2. */
  readonly retrySeconds?: number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly onFault?: (error: unknown) => void;
}

/** The kubelet's defaults. */
const LEASE_DURATION_SECONDS = 40;
const LEASE_INTERVAL_SECONDS = 10;

const DEFAULT_RESOURCES = {
  memory: '64Gi',
  'ephemeral-storage': '100Gi',
  'devices.kubevirt.io/kvm': '1k',
  'devices.kubevirt.io/tun': '1k',
  'devices.kubevirt.io/vhost-net': '1k',
};

/**
 * A kubelet stand-in for one emulated node. It admits its pods by the real rules (model/kubelet), writes the same files
 * as the real kubelet, serves the same two gRPC APIs, and runs its pods in `containers`.
 */
export function createKubelet(options: KubeletOptions) {
  const { name, settings, directory, client, now = Date.now, onFault = () => {}, retrySeconds = 2 } = options;
  const { containers = NO_CONTAINERS } = options;
  const facts: NodeFacts = {
    name,
    settings,
    labels: options.labels ?? {},
    resources: { ...DEFAULT_RESOURCES, ...options.resources },
  };
  let managers: Managers;
  let ledger: PodLedger | undefined;
  let end = () => {};
  let line: Promise<unknown> = Promise.resolve();

  /** Runs tasks one at a time, in order: admissions, releases, device lists. */
  const inLine = (task: () => unknown) => {
    line = line.then(task).catch(onFault);
    return line;
  };

  const plugins = createDevicePlugins({
    directory: join(directory, 'device-plugins'),
    onDevices: (resource, devices) => {
      managers.setDevices(resource, devices);
      publish().catch(onFault);
    },
  });
  const podResources = createPodResources({
    directory: join(directory, 'pod-resources'),
    pods: () => ledger?.pods() ?? [],
    state: () => managers.state,
    numaIds: () => managers.numaIds,
    allocatableCpus:
      settings.cpuManagerPolicy === 'static' ? settings.host.online.minus(settings.reserved) : CpuSet.EMPTY,
  });
  const worker = createPodWorker({
    client,
    now,
    retrySeconds,
    preStart: plugins.preStart,
    containers,
    devicesOf: (uid, container) => managers.state.devices.get(uid)?.get(container) ?? new Map(),
  });

  // Without it the node lifecycle controller considers the node lost.
  const lease = new RenewedLease({
    client,
    metadata: { name, namespace: 'kube-node-lease' },
    holder: name,
    durationSeconds: LEASE_DURATION_SECONDS,
    intervalSeconds: LEASE_INTERVAL_SECONDS,
    now,
    onFault,
  });

  const publish = () => {
    const devices = new Map([...managers.state.pools].map(([resource, pool]) => [resource, pool.devices]));
    return publishNode(client, facts, devices, now());
  };

  const onPod = ({ type, object: pod }: LocalChange<Pod>) => {
    const pods = ledger;
    if (!pods || pod.spec.nodeName !== name) return;
    const uid = pod.metadata.uid ?? '';
    const phase = pod.status?.phase;
    if (type === 'DELETED') void inLine(() => pods.release(uid));
    else if (pod.metadata.deletionTimestamp) void inLine(() => pods.release(uid).then(() => worker.finish(pod)));
    else if (phase === 'Failed' || phase === 'Succeeded') void inLine(() => pods.has(uid) && pods.release(uid));
    else if (!pods.has(uid)) void inLine(() => pods.admit(pod));
    else {
      pods.note(pod);
      worker.refresh(pod).catch(onFault);
    }
  };

  return {
    directory,
    /** @throws StateFileError if the state of an earlier kubelet does not match these settings */
    async start() {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, 'config.yaml'), kubeletConfiguration(settings));
      managers = await openManagers({ settings, directory, allocate: plugins.allocate });
      ledger = createPodLedger({ nodeName: name, client, managers, worker, containers, onFault });
      await podResources.start();
      await plugins.start();
      await publish();
      await lease.start();
      await ledger.releaseStale();
      end = client.follow(PODS, onPod);
      await line;
    },
    /** Simulates that all containers of a pod on this node exit with 0. Ignores pods without resources here. */
    async exit(podUID: string) {
      const pod = ledger?.pods().find(({ metadata }) => metadata.uid === podUID);
      if (pod !== undefined) await worker.complete(pod);
    },
    /** Stops as a killed kubelet does: pods, Node and files stay, and the sockets close. */
    async stop() {
      end();
      await lease.stop();
      ledger?.abandon();
      await plugins.stop();
      await line;
      await podResources.stop();
    },
  };
}
