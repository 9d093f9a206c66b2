import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { CpuSet } from '../../model/cpu-set.ts';
import { NODES, PODS } from '../api-server/built-in-types.ts';
import type { LocalChange, LocalClient } from '../clients/local-client.ts';
import { RenewedLease } from '../clients/renewed-lease.ts';
import type { JsonRecord, KubePod } from '../objects.ts';
import { shortage } from '../pod-requests.ts';
import { createDevicePlugins } from './device-plugins.ts';
import { type EmulatedKubelet, kubeletConfiguration, type Managers, openManagers } from './managers.ts';
import { type KubeletFacts, publishNode } from './node-object.ts';
import { createPodResources } from './pod-resources.ts';
import { type Containers, createPodWorker, NO_CONTAINERS, type PodWorker } from './pod-worker.ts';

interface KubeletOptions {
  readonly name: string;
  readonly settings: EmulatedKubelet;
  /** The kubelet's root directory. Keep the path short: Unix socket paths are limited to 107 bytes. */
  readonly directory: string;
  readonly client: LocalClient;
  /** Labels of the Node in addition to those of every emulated node. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Resources other than CPUs and plugins' devices. Default: 64Gi of memory, KubeVirt's kvm and tun. */
  readonly resources?: Readonly<Record<string, string>>;
  readonly containers?: Containers;
  /** The result of a pod's readiness probes, read every second. Default: ready. */
  readonly isReady?: (pod: KubePod) => boolean;
  readonly retrySeconds?: number;
  readonly onFault?: (error: unknown) => void;
}

const PROBE_INTERVAL_MILLISECONDS = 1000;

/** The kubelet's defaults. */
const LEASE = { durationSeconds: 40, intervalSeconds: 10 };

const DEFAULT_RESOURCES = {
  memory: '64Gi',
  'ephemeral-storage': '100Gi',
  'devices.kubevirt.io/kvm': '1k',
  'devices.kubevirt.io/tun': '1k',
  'devices.kubevirt.io/vhost-net': '1k',
};

/** By the real rules (model/kubelet), with the real one's files and two gRPC APIs; runs pods in `containers`. */
export function createKubelet(options: KubeletOptions) {
  const { name, settings, directory, client, onFault = () => {}, retrySeconds = 2 } = options;
  const { containers = NO_CONTAINERS, isReady, labels = {} } = options;
  const facts: KubeletFacts = { name, settings, labels, resources: { ...DEFAULT_RESOURCES, ...options.resources } };
  let managers: Managers;
  let end = () => {};
  let probing: NodeJS.Timeout | undefined;
  let line: Promise<unknown> = Promise.resolve();

  const inLine = (task: () => unknown) => {
    line = line.then(task).catch(onFault);
    return line;
  };

  const publish = () => publishNode(client, facts, managers.state.pools);

  const plugins = createDevicePlugins({
    directory: join(directory, 'device-plugins'),
    onDevices: (resource, devices) => {
      managers.setDevices(resource, devices);
      publish().catch(onFault);
    },
  });
  const worker = createPodWorker({
    client,
    retrySeconds,
    preStart: plugins.preStart,
    containers,
    isReady: isReady ?? (() => true),
    devicesOf: (uid, container) => managers.state.devices.get(uid)?.get(container) ?? new Map(),
  });

  const lease = new RenewedLease({
    ...LEASE,
    client,
    metadata: { name, namespace: 'kube-node-lease' },
    holder: name,
    onFault,
  });

  const ledger = createPodLedger({ name, client, containers, onFault, worker, managers: () => managers });

  const podResources = createPodResources({
    directory: join(directory, 'pod-resources'),
    pods: ledger.pods,
    state: () => managers.state,
    allocatableCpus:
      settings.cpuManagerPolicy === 'static' ? settings.host.online.minus(settings.reserved) : CpuSet.EMPTY,
  });
  const onPod = ({ type, object: pod }: LocalChange<KubePod>) => {
    if (pod.spec.nodeName !== name) return;
    const uid = pod.metadata.uid ?? '';
    const phase = pod.status?.phase;
    const entry = ledger.get(uid);
    if (type === 'DELETED') void inLine(() => ledger.release(uid));
    else if (pod.metadata.deletionTimestamp) void inLine(() => ledger.release(uid).then(() => worker.finish(pod)));
    else if (phase === 'Failed' || phase === 'Succeeded') void inLine(() => ledger.get(uid) && ledger.release(uid));
    else if (entry === undefined) void inLine(() => ledger.admit(pod));
    else {
      entry.pod = pod;
      worker.refresh(pod).catch(onFault);
    }
  };

  const probe = () => {
    for (const pod of ledger.pods()) worker.refresh(pod).catch(onFault);
  };

  return {
    directory,
    configz: () => ({ kubeletconfig: parse(kubeletConfiguration(settings)) as JsonRecord }),
    /** @throws StateFileError if the state of an earlier kubelet does not match these settings */
    async start() {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, 'config.yaml'), kubeletConfiguration(settings));
      managers = await openManagers({ settings, directory, allocate: plugins.allocate });
      ledger.clear();
      await podResources.start();
      await plugins.start();
      await publish();
      await lease.start();
      // Pods that were deleted while no kubelet was running.
      const present = new Set(client.list(PODS).map(({ metadata }) => metadata.uid));
      const { assignments, devices } = managers.state;
      for (const uid of new Set([...assignments.keys(), ...devices.keys()]))
        if (!present.has(uid)) await ledger.release(uid);
      end = client.follow(PODS, onPod);
      if (isReady) probing = setInterval(probe, PROBE_INTERVAL_MILLISECONDS);
      await line;
    },
    /** All containers of a pod exit with 0. Ignores pods that are not on this node. */
    async exit(podUID: string) {
      const entry = ledger.get(podUID);
      if (entry !== undefined) await worker.complete(entry.pod);
    },
    /** Stops as a killed kubelet does: pods, Node and files stay, and the sockets close. */
    async stop() {
      end();
      clearInterval(probing);
      await lease.stop();
      ledger.abandon();
      await plugins.stop();
      await line;
      await podResources.stop();
    },
  };
}

interface LedgerDeps extends Required<Pick<KubeletOptions, 'name' | 'client' | 'containers' | 'onFault'>> {
  readonly worker: PodWorker;
  readonly managers: () => Managers;
}

/** The admitted and refused pods of one node. Calls that change it must not overlap. */
function createPodLedger({ name, client, containers, onFault, worker, managers }: LedgerDeps) {
  /** Each with the controller that aborts its start. */
  const admitted = new Map<string, { pod: KubePod; ending: AbortController }>();
  const refused = new Set<string>();
  const pods = () => [...admitted.values()].map(({ pod }) => pod);

  const release = async (uid: string) => {
    admitted.get(uid)?.ending.abort();
    admitted.delete(uid);
    refused.delete(uid);
    await containers.stop(uid);
    await managers().release(uid);
  };

  /** Admits a pod or fails it. A pod that ran before a restart is checked again but not started again. */
  const admit = async (pod: KubePod) => {
    const { uid = '', namespace } = pod.metadata;
    if (admitted.has(uid) || refused.has(uid)) return;
    const current = client.get(PODS, namespace, pod.metadata.name);
    if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp) return;
    const outcome = await managers().admit(pod);
    const devices = managers().state.devices.get(uid);
    const refusal = outcome.admitted ? shortage(pod, pods(), client.get(NODES, undefined, name), devices) : outcome;
    if (refusal) {
      await managers().release(uid);
      refused.add(uid);
      await worker.reject(pod, refusal.reason, refusal.message);
      return;
    }
    const ending = new AbortController();
    admitted.set(uid, { pod, ending });
    if (pod.status?.phase !== 'Running') worker.start(pod, ending.signal).catch(onFault);
  };

  return {
    pods,
    get: (uid: string) => admitted.get(uid),
    release,
    admit,
    clear() {
      admitted.clear();
      refused.clear();
    },
    abandon() {
      for (const { ending } of admitted.values()) ending.abort();
    },
  };
}
