import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { NODES, PODS } from '../api-server/built-in-types.ts';
import type { LocalChange, LocalClient } from '../local-client.ts';
import type { Pod } from '../objects.ts';
import { createDevicePlugins } from './device-plugins.ts';
import { type Managers, openManagers } from './managers.ts';
import { shortage } from './node-fit.ts';
import type { NodeFacts } from './node-object.ts';
import { publishNode } from './node-publisher.ts';
import { createPodResources } from './pod-resources.ts';
import { createPodWorker } from './pod-worker.ts';
import { type KubeletSettings, kubeletConfiguration } from './settings.ts';

export interface KubeletOptions {
  readonly name: string;
  readonly settings: KubeletSettings;
  /** The kubelet's root directory. Keep it short: unix socket paths end at 107 bytes. */
  readonly directory: string;
  readonly client: LocalClient;
  /** Labels of the Node beside those every emulated node has. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Amounts beside CPUs and plugins' devices. Default: 64Gi of memory, KubeVirt's kvm and tun. */
  readonly resources?: Readonly<Record<string, string>>;
  /** Time between two tries of a container that could not be created. Default 2 s. */
  readonly retrySeconds?: number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly onFault?: (error: unknown) => void;
}

export interface Kubelet {
  readonly directory: string;
  /** @throws StateFileError if what an earlier kubelet left behind does not fit these settings */
  start(): Promise<void>;
  /** Stops as a killed kubelet does: pods, Node and files stay as they are, the sockets go. */
  stop(): Promise<void>;
}

const DEFAULT_RESOURCES = {
  memory: '64Gi',
  'ephemeral-storage': '100Gi',
  'devices.kubevirt.io/kvm': '1k',
  'devices.kubevirt.io/tun': '1k',
  'devices.kubevirt.io/vhost-net': '1k',
};

/**
 * A kubelet stand-in for one emulated node. It admits the pods bound to it by the real rules (model/kubelet), writes
 * what the real one writes, speaks the same two gRPC APIs, and runs nothing.
 */
export function createKubelet(options: KubeletOptions): Kubelet {
  const { name, settings, directory, client, now = Date.now, onFault = () => {}, retrySeconds = 2 } = options;
  const facts: NodeFacts = {
    name,
    settings,
    labels: options.labels ?? {},
    resources: { ...DEFAULT_RESOURCES, ...options.resources },
  };
  /** Pods that hold resources here, each with what ends its start. */
  const admitted = new Map<string, { pod: Pod; ending: AbortController }>();
  /** Pods that were refused, so that their later updates are not admissions. */
  const refused = new Set<string>();
  let managers: Managers;
  let end = () => {};
  let line: Promise<unknown> = Promise.resolve();

  /** One thing at a time, in order: admissions, releases, device lists. */
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
    pods: () => [...admitted.values()].map(({ pod }) => pod),
    state: () => managers.state,
    allocatableCpus:
      settings.cpuManagerPolicy === 'static' ? settings.host.online.minus(settings.reserved) : CpuSet.EMPTY,
  });
  const worker = createPodWorker({
    client,
    now,
    retrySeconds,
    preStart: plugins.preStart,
    devicesOf: (uid, container) => managers.state.devices.get(uid)?.get(container) ?? new Map(),
  });

  const publish = () => {
    const devices = new Map([...managers.state.pools].map(([resource, pool]) => [resource, pool.devices]));
    return publishNode(client, facts, devices, now());
  };

  const release = async (uid: string) => {
    admitted.get(uid)?.ending.abort();
    admitted.delete(uid);
    refused.delete(uid);
    await managers.release(uid);
  };

  /** What pods held that went while no kubelet was there. */
  const releaseStale = async () => {
    const known = new Set(client.list(PODS).map(({ metadata }) => metadata.uid));
    const { assignments, devices } = managers.state;
    for (const uid of new Set([...assignments.keys(), ...devices.keys()])) if (!known.has(uid)) await release(uid);
  };

  const shortageOf = (pod: Pod) => {
    const others = [...admitted.values()].map((entry) => entry.pod);
    return shortage(
      pod,
      others,
      client.get(NODES, undefined, name),
      managers.state.devices.get(pod.metadata.uid ?? ''),
    );
  };

  const admit = async (pod: Pod, wasRunning: boolean) => {
    const uid = pod.metadata.uid ?? '';
    if (admitted.has(uid) || refused.has(uid)) return;
    const current = client.get(PODS, pod.metadata.namespace, pod.metadata.name);
    if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp) return;
    const outcome = await managers.admit(pod);
    const short = outcome.admitted ? shortageOf(pod) : undefined;
    if (!outcome.admitted || short) {
      refused.add(uid);
      await managers.release(uid);
      const { reason, message } = short ?? (outcome as { reason: string; message: string });
      await worker.reject(pod, reason, message);
      return;
    }
    const ending = new AbortController();
    admitted.set(uid, { pod, ending });
    if (!wasRunning) worker.start(pod, ending.signal).catch(onFault);
  };

  const onPod = ({ type, object: pod }: LocalChange<Pod>) => {
    if (pod.spec.nodeName !== name) return;
    const uid = pod.metadata.uid ?? '';
    const phase = pod.status?.phase;
    if (type === 'DELETED') void inLine(() => release(uid));
    else if (pod.metadata.deletionTimestamp) void inLine(() => release(uid).then(() => worker.finish(pod)));
    else if (phase === 'Failed' || phase === 'Succeeded') void inLine(() => admitted.has(uid) && release(uid));
    else if (!admitted.has(uid)) void inLine(() => admit(pod, phase === 'Running'));
    else {
      admitted.get(uid)!.pod = pod;
      worker.refresh(pod).catch(onFault);
    }
  };

  return {
    directory,
    async start() {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, 'config.yaml'), kubeletConfiguration(settings));
      managers = await openManagers({ settings, directory, allocate: plugins.allocate });
      await podResources.start();
      await plugins.start();
      await publish();
      await releaseStale();
      end = client.follow(PODS, onPod);
      await line;
    },
    async stop() {
      end();
      await plugins.stop();
      await line;
      for (const { ending } of admitted.values()) ending.abort();
      admitted.clear();
      await podResources.stop();
    },
  };
}
