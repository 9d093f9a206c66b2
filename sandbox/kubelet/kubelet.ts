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
import { type Managers, openManagers } from './managers.ts';
import { type KubeletFacts, publishNode } from './node-object.ts';
import { createPodResources } from './pod-resources.ts';
import { type Containers, createPodWorker, NO_CONTAINERS, type PodWorker } from './pod-worker.ts';
import { type EmulatedKubeletSettings, kubeletConfiguration } from './settings.ts';

interface KubeletOptions {
  readonly name: string;
  readonly settings: EmulatedKubeletSettings;
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

/**
 * Admits by the real rules (model/kubelet), with the real kubelet's files and two gRPC APIs; runs pods in `containers`.
 * The state is that of one run: `start` reads the state files again, `stop` leaves them as a killed kubelet does.
 */
export class EmulatedKubelet {
  readonly directory: string;
  readonly #options: KubeletOptions;
  readonly #onFault = (error: unknown): void => this.#options.onFault?.(error);
  readonly #facts: KubeletFacts;
  readonly #plugins: ReturnType<typeof createDevicePlugins>;
  readonly #worker: PodWorker;
  readonly #lease: RenewedLease;
  readonly #ledger: PodLedger;
  readonly #podResources: ReturnType<typeof createPodResources>;
  #managers: Managers | undefined;
  #unfollow = () => {};
  #probing: NodeJS.Timeout | undefined;
  /** The end of the last task: tasks that change the ledger do not overlap. */
  #lastTask: Promise<unknown> = Promise.resolve();

  constructor(options: KubeletOptions) {
    const { name, settings, directory, client, labels = {}, retrySeconds = 2, containers = NO_CONTAINERS } = options;
    this.#options = options;
    this.directory = directory;
    this.#facts = { name, settings, labels, resources: { ...DEFAULT_RESOURCES, ...options.resources } };
    this.#plugins = createDevicePlugins({
      directory: join(directory, 'device-plugins'),
      onDevices: (resource, devices) => {
        this.#openManagers.setDevices(resource, devices);
        this.#publish().catch(this.#onFault);
      },
    });
    this.#worker = createPodWorker({
      client,
      retrySeconds,
      preStart: this.#plugins.preStart,
      containers,
      isReady: options.isReady ?? (() => true),
      devicesOf: (uid, container) => this.#openManagers.state.devices.get(uid)?.get(container) ?? new Map(),
    });
    this.#lease = new RenewedLease({
      ...LEASE,
      client,
      metadata: { name, namespace: 'kube-node-lease' },
      holder: name,
      onFault: this.#onFault,
    });
    this.#ledger = new PodLedger({
      name,
      client,
      containers,
      onFault: this.#onFault,
      worker: this.#worker,
      managers: () => this.#openManagers,
    });
    this.#podResources = createPodResources({
      directory: join(directory, 'pod-resources'),
      pods: () => this.#ledger.pods(),
      state: () => this.#openManagers.state,
      allocatableCpus:
        settings.cpuManagerPolicy === 'static' ? settings.host.online.minus(settings.reserved) : CpuSet.EMPTY,
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
    const { allocate } = this.#plugins;
    this.#managers = await openManagers({ settings, directory: this.directory, allocate });
    this.#ledger.clear();
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
    const entry = this.#ledger.get(podUID);
    if (entry !== undefined) await this.#worker.complete(entry.pod);
  }

  /** Stops as a killed kubelet does: pods, Node and files stay, and the sockets close. */
  async stop(): Promise<void> {
    this.#unfollow();
    clearInterval(this.#probing);
    await this.#lease.stop();
    this.#ledger.abandon();
    await this.#plugins.stop();
    await this.#lastTask;
    await this.#podResources.stop();
  }

  get #openManagers(): Managers {
    if (this.#managers === undefined) throw new Error(`the kubelet of ${this.#options.name} has not been started`);
    return this.#managers;
  }

  #publish(): Promise<void> {
    return publishNode(this.#options.client, this.#facts, this.#openManagers.state.pools);
  }

  /** Pods that were deleted while no kubelet was running. */
  async #releaseDeleted(): Promise<void> {
    const present = new Set(this.#options.client.list(PODS).map(({ metadata }) => metadata.uid));
    const { assignments, devices } = this.#openManagers.state;
    for (const uid of new Set([...assignments.keys(), ...devices.keys()])) {
      if (!present.has(uid)) await this.#ledger.release(uid);
    }
  }

  #enqueue(task: () => unknown): void {
    this.#lastTask = this.#lastTask.then(task).catch(this.#onFault);
  }

  #podChanged({ type, object: pod }: LocalChange<KubePod>): void {
    if (pod.spec.nodeName !== this.#options.name) return;
    const ledger = this.#ledger;
    const uid = pod.metadata.uid ?? '';
    const phase = pod.status?.phase;
    const entry = ledger.get(uid);
    if (type === 'DELETED') this.#enqueue(() => ledger.release(uid));
    else if (pod.metadata.deletionTimestamp)
      this.#enqueue(() => ledger.release(uid).then(() => this.#worker.finish(pod)));
    else if (phase === 'Failed' || phase === 'Succeeded') this.#enqueue(() => ledger.get(uid) && ledger.release(uid));
    else if (entry === undefined) this.#enqueue(() => ledger.admit(pod));
    else {
      entry.pod = pod;
      this.#worker.refresh(pod).catch(this.#onFault);
    }
  }

  #probe(): void {
    for (const pod of this.#ledger.pods()) this.#worker.refresh(pod).catch(this.#onFault);
  }
}

interface LedgerDeps extends Required<Pick<KubeletOptions, 'name' | 'client' | 'containers' | 'onFault'>> {
  readonly worker: PodWorker;
  readonly managers: () => Managers;
}

/**
 * The admitted and refused pods of one node. Owner: the kubelet, whose calls that change it must not overlap. End: the
 * release of a pod, or the next start of the kubelet.
 */
class PodLedger {
  readonly #deps: LedgerDeps;
  /** Each with the controller that aborts its start. */
  readonly #admitted = new Map<string, { pod: KubePod; ending: AbortController }>();
  readonly #refused = new Set<string>();

  constructor(deps: LedgerDeps) {
    this.#deps = deps;
  }

  get(uid: string) {
    return this.#admitted.get(uid);
  }

  pods(): KubePod[] {
    return [...this.#admitted.values()].map(({ pod }) => pod);
  }

  async release(uid: string): Promise<void> {
    this.#admitted.get(uid)?.ending.abort();
    this.#admitted.delete(uid);
    this.#refused.delete(uid);
    await this.#deps.containers.stop(uid);
    await this.#deps.managers().release(uid);
  }

  /** Admits a pod or fails it. A pod that ran before a restart is checked again but not started again. */
  async admit(pod: KubePod): Promise<void> {
    const { name, client, managers, worker, onFault } = this.#deps;
    const { uid = '', namespace } = pod.metadata;
    if (this.#admitted.has(uid) || this.#refused.has(uid)) return;
    const current = client.get(PODS, namespace, pod.metadata.name);
    if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp) return;
    const outcome = await managers().admit(pod);
    const devices = managers().state.devices.get(uid);
    const node = client.get(NODES, undefined, name);
    const refusal = outcome.admitted ? shortage(pod, this.pods(), node, devices) : outcome;
    if (refusal) {
      await managers().release(uid);
      this.#refused.add(uid);
      await worker.reject(pod, refusal.reason, refusal.message);
      return;
    }
    const ending = new AbortController();
    this.#admitted.set(uid, { pod, ending });
    if (pod.status?.phase !== 'Running') worker.start(pod, ending.signal).catch(onFault);
  }

  clear(): void {
    this.#admitted.clear();
    this.#refused.clear();
  }

  abandon(): void {
    for (const { ending } of this.#admitted.values()) ending.abort();
  }
}
