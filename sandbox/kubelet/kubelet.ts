import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { NODES, PODS } from '../api-server/built-in-types.ts';
import { type LocalChange, type LocalClient, RenewedLease } from '../clients/local-client.ts';
import type { JsonRecord, KubePod } from '../objects.ts';
import { shortage } from '../pod-requests.ts';
import { createDevicePlugins, createPodResources } from './grpc-apis.ts';
import { type EmulatedKubeletSettings, kubeletConfiguration, type Managers, openManagers } from './managers.ts';
import { type KubeletFacts, publishNode } from './node-object.ts';
import { type Containers, createPodWorker, NO_CONTAINERS, type PodWorker } from './pod-worker.ts';

interface KubeletOptions {
  readonly name: string;
  readonly settings: EmulatedKubeletSettings;
  /** The kubelet's root directory. Keep the path short: Unix socket paths are limited to 107 bytes. */
  readonly directory: string;
  readonly client: LocalClient;
  /** Labels of the Node in addition to those of every emulated node. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Resources other than CPUs and plugins' devices. Default: 64Gi of memory, KubeVirt's kvm and tun. */
  readonly resources?: Readonly<Record<string, string>> | undefined;
  readonly containers?: Containers;
  /** The result of a pod's readiness probes, read every second. Default: ready. */
  readonly isReady?: ((pod: KubePod) => boolean) | undefined;
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

/**
 * Admits by the real rules (model/kubelet), with the real kubelet's files and two gRPC APIs; runs pods in `containers`.
 * The state is that of one run: `start` reads the state files again, `stop` leaves them as a killed kubelet does.
 */
export class EmulatedKubelet {
  readonly directory: string;
  readonly #options: KubeletOptions;
  readonly #onFault = (error: unknown): void => this.#options.onFault?.(error);
  readonly #containers: Containers;
  readonly #facts: KubeletFacts;
  readonly #plugins: ReturnType<typeof createDevicePlugins>;
  readonly #worker: PodWorker;
  readonly #lease: RenewedLease;
  readonly #podResources: ReturnType<typeof createPodResources>;
  /** Until their release, each with the controller that aborts its start. */
  readonly #admitted = new Map<string, { pod: KubePod; ending: AbortController }>();
  readonly #refused = new Set<string>();
  #managers: Managers | undefined;
  #unfollow = () => {};
  #probing: NodeJS.Timeout | undefined;
  /** The end of the last task: tasks that admit and release pods do not overlap. */
  #lastTask: Promise<unknown> = Promise.resolve();

  constructor(options: KubeletOptions) {
    const { name, settings, directory, client, labels = {}, retrySeconds = 2, containers = NO_CONTAINERS } = options;
    this.#options = options;
    this.directory = directory;
    this.#containers = containers;
    this.#facts = { name, settings, labels, resources: { ...DEFAULT_RESOURCES, ...options.resources } };
    this.#plugins = createDevicePlugins(join(directory, 'device-plugins'), (resource, devices) => {
      this.#openManagers.setDevices(resource, devices);
      this.#publish().catch(this.#onFault);
    });
    this.#worker = createPodWorker({
      client,
      retrySeconds,
      preStart: this.#plugins.preStart,
      containers,
      isReady: options.isReady ?? (() => true),
      devicesOf: (uid, container) => this.#openManagers.state.devices.get(uid)?.get(container) ?? new Map(),
    });
    const metadata = { name, namespace: 'kube-node-lease' };
    this.#lease = new RenewedLease({ ...LEASE, client, metadata, holder: name, onFault: this.#onFault });
    const { cpuManagerPolicy, host, reserved } = settings;
    this.#podResources = createPodResources({
      directory: join(directory, 'pod-resources'),
      pods: () => this.#pods(),
      state: () => this.#openManagers.state,
      allocatableCpus: cpuManagerPolicy === 'static' ? host.online.minus(reserved) : CpuSet.EMPTY,
    });
  }

  configz(): { kubeletconfig: JsonRecord } {
    return { kubeletconfig: parse(kubeletConfiguration(this.#options.settings)) as JsonRecord };
  }

  /** @throws StateFileError if the state of an earlier kubelet does not match these settings */
  async start(): Promise<void> {
    const { settings, client, isReady } = this.#options;
    await mkdir(this.directory, { recursive: true });
    await writeFile(join(this.directory, 'config.yaml'), kubeletConfiguration(settings));
    this.#managers = await openManagers(settings, this.directory, this.#plugins.allocate);
    this.#admitted.clear();
    this.#refused.clear();
    await this.#podResources.start();
    await this.#plugins.start();
    await this.#publish();
    await this.#lease.start();
    await this.#releaseDeleted();
    this.#unfollow = client.follow(PODS, (change) => this.#podChanged(change));
    if (isReady) this.#probing = setInterval(() => this.#probe(), PROBE_INTERVAL_MILLISECONDS);
    await this.#lastTask;
  }

  /** All containers of a pod exit with 0. Ignores pods that are not on this node. */
  async exit(podUID: string): Promise<void> {
    const entry = this.#admitted.get(podUID);
    if (entry !== undefined) await this.#worker.complete(entry.pod);
  }

  /** Stops as a killed kubelet does: pods, Node and files stay, and the sockets close. */
  async stop(): Promise<void> {
    this.#unfollow();
    clearInterval(this.#probing);
    await this.#lease.stop();
    for (const { ending } of this.#admitted.values()) ending.abort();
    await this.#plugins.stop();
    await this.#lastTask;
    await this.#podResources.stop();
  }

  get #openManagers(): Managers {
    if (this.#managers === undefined) throw new Error(`the kubelet of ${this.#options.name} has not been started`);
    return this.#managers;
  }

  #pods(): KubePod[] {
    return [...this.#admitted.values()].map(({ pod }) => pod);
  }

  #publish(): Promise<void> {
    return publishNode(this.#options.client, this.#facts, this.#openManagers.state.pools);
  }

  /** Pods that were deleted while no kubelet was running. */
  async #releaseDeleted(): Promise<void> {
    const present = new Set(this.#options.client.list(PODS).map(({ metadata }) => metadata.uid));
    const { assignments, devices } = this.#openManagers.state;
    for (const uid of new Set([...assignments.keys(), ...devices.keys()])) {
      if (!present.has(uid)) await this.#release(uid);
    }
  }

  #enqueue(task: () => unknown): void {
    this.#lastTask = this.#lastTask.then(task).catch(this.#onFault);
  }

  #podChanged({ type, object: pod }: LocalChange<KubePod>): void {
    if (pod.spec.nodeName !== this.#options.name) return;
    const uid = pod.metadata.uid ?? '';
    const entry = this.#admitted.get(uid);
    if (type === 'DELETED') this.#enqueue(() => this.#release(uid));
    else if (pod.metadata.deletionTimestamp)
      this.#enqueue(() => this.#release(uid).then(() => this.#worker.finish(pod)));
    else if (isFinalPhase(pod.status?.phase)) this.#enqueue(() => this.#admitted.has(uid) && this.#release(uid));
    else if (entry === undefined) this.#enqueue(() => this.#admit(pod));
    else {
      entry.pod = pod;
      this.#worker.refresh(pod).catch(this.#onFault);
    }
  }

  #probe(): void {
    for (const pod of this.#pods()) this.#worker.refresh(pod).catch(this.#onFault);
  }

  async #release(uid: string): Promise<void> {
    this.#admitted.get(uid)?.ending.abort();
    this.#admitted.delete(uid);
    this.#refused.delete(uid);
    await this.#containers.stop(uid);
    await this.#openManagers.release(uid);
  }

  /** Admits a pod or fails it. A pod that ran before a restart is checked again but not started again. */
  async #admit(pod: KubePod): Promise<void> {
    const { name, client } = this.#options;
    const { uid = '', namespace } = pod.metadata;
    if (this.#admitted.has(uid) || this.#refused.has(uid)) return;
    const current = client.get(PODS, namespace, pod.metadata.name);
    if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp) return;
    const managers = this.#openManagers;
    const outcome = await managers.admit(pod);
    const devices = managers.state.devices.get(uid);
    const node = client.get(NODES, undefined, name);
    const refusal = outcome.admitted ? shortage(pod, this.#pods(), node, devices) : outcome;
    if (refusal) {
      await managers.release(uid);
      this.#refused.add(uid);
      await this.#worker.reject(pod, refusal.reason, refusal.message);
      return;
    }
    const ending = new AbortController();
    this.#admitted.set(uid, { pod, ending });
    if (pod.status?.phase !== 'Running') this.#worker.start(pod, ending.signal).catch(this.#onFault);
  }
}
