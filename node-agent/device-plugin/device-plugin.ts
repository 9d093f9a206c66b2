import { join } from 'node:path';
import { KUBELET_SOCKET, PLUGIN_DIRECTORY, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, monotonicSeconds, sleep } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal, repeat } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import {
  type AdvertisedResource,
  type BeforeStart,
  kubeletGeneration,
  optionsOf,
  PluginServer,
  socketName,
} from './plugin-server.ts';

/** Seconds after which a registration counts as lasting: only repeated losses increase the pause before the next one. */
const LASTING_SECONDS = 30;

export interface DevicePluginDeps {
  readonly kubeletDir: string;
  readonly beforeStart: BeforeStart;
  readonly log: AgentLogger;
  readonly onRegistration: (resource: string, outcome: 'registered' | 'failed') => void;
}

/**
 * Registers a socket for each resource with every kubelet that appears: a restarted one has forgotten its plugins and
 * removed their sockets. A replaced socket and the end of the kubelet's watch cause a new registration, too.
 * Servers belong to one run of the kubelet: they end with it, with their resource, and with the duty. While it is unknown
 * which kubelet runs, they stay.
 */
export class DevicePlugin {
  readonly #deps: DevicePluginDeps;
  readonly #directory: string;
  readonly #kubeletSocket: string;
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #changes = new ChangeSignal();
  #desired: readonly AdvertisedResource[] = [];
  /** By resource. */
  readonly #servers = new Map<string, PluginServer>();
  /** Why a resource's registration was lost, until its server is stopped. */
  readonly #disconnected = new Map<string, string>();
  readonly #lossBackoff = new Backoff({ first: 0.2, most: 4 });
  #disconnectedAtSeconds = 0;
  /** The run of the kubelet that the servers registered with; '' for none. */
  #served = '';

  constructor(deps: DevicePluginDeps) {
    this.#deps = deps;
    this.#directory = join(deps.kubeletDir, PLUGIN_DIRECTORY);
    this.#kubeletSocket = join(this.#directory, KUBELET_SOCKET);
    this.#problems = new ProblemLog(deps.log);
  }

  /** Replaces the advertised resources; allocated devices stay allocated. */
  advertise(resources: readonly AdvertisedResource[]): void {
    this.#desired = resources;
    this.#changes.set();
  }

  async run(signal: AbortSignal): Promise<void> {
    const onChange = () => {
      this.#checkSockets();
      this.#changes.set();
    };
    watchDirectory({ path: this.#directory, signal, onChange, log: this.#deps.log });
    await repeat(signal, () => this.#reconcile(signal), {
      problems: {
        failed: (error, warning) => this.#problems.failed(error, warning),
        // Without a kubelet, nothing is registered.
        recovered: () => this.#served !== '' && this.#problems.recovered(),
      },
      warning: 'registering the device plugin failed; retrying',
      pauses: new Backoff({ first: 0.2, most: 4 }),
      changes: this.#changes,
    });
    await this.#stop();
  }

  async #reconcile(signal: AbortSignal): Promise<undefined> {
    const generation = kubeletGeneration(this.#directory);
    if (generation !== this.#served) await this.#stop();
    this.#served = generation;
    if (generation === '') {
      this.#problems.failed(`${this.#kubeletSocket} does not exist`, 'waiting for the kubelet');
      return;
    }
    try {
      await this.#stopDisconnected(signal);
      await this.#serve(signal);
    } catch (error) {
      await this.#stop();
      throw error;
    }
  }

  #checkSockets(): void {
    for (const [name, server] of this.#servers)
      if (!server.isInPlace()) this.#disconnected.set(name, 'its socket was removed or replaced');
  }

  async #serve(signal: AbortSignal): Promise<void> {
    const desired = this.#desired;
    const names = new Set(desired.map(({ name }) => name));
    await this.#stop([...this.#servers.keys()].filter((name) => !names.has(name)));
    const added: AdvertisedResource[] = [];
    for (const resource of desired) {
      const server = this.#servers.get(resource.name);
      if (server === undefined) added.push(resource);
      else if (JSON.stringify(server.resource) !== JSON.stringify(resource)) server.update(resource);
    }
    for (const resource of added) await this.#start(resource);
    for (const resource of added) await this.#register(resource, signal);
    const resources = added.map(({ name }) => name);
    if (resources.length > 0) this.#deps.log.info({ resources }, 'device plugin registered with the kubelet');
  }

  async #start(resource: AdvertisedResource): Promise<void> {
    const server = new PluginServer({
      socketPath: join(this.#directory, socketName(resource.name)),
      resource,
      beforeStart: this.#deps.beforeStart,
      onUnwatched: () => {
        this.#disconnected.set(resource.name, 'the kubelet ended its watch');
        this.#changes.set();
      },
    });
    this.#servers.set(resource.name, server);
    await server.start();
  }

  async #register(resource: AdvertisedResource, signal: AbortSignal): Promise<void> {
    const request = { endpoint: socketName(resource.name), resourceName: resource.name, options: optionsOf(resource) };
    try {
      await registerPlugin(this.#kubeletSocket, request, { signal });
      this.#deps.onRegistration(resource.name, 'registered');
    } catch (error) {
      this.#deps.onRegistration(resource.name, 'failed');
      throw error;
    }
  }

  /** Stops what was lost, so that the next `#serve` starts and registers it again. */
  async #stopDisconnected(signal: AbortSignal): Promise<void> {
    if (this.#disconnected.size === 0) return;
    if (monotonicSeconds() - this.#disconnectedAtSeconds > LASTING_SECONDS) this.#lossBackoff.reset();
    this.#disconnectedAtSeconds = monotonicSeconds();
    await sleep(this.#lossBackoff.next(), signal);
    this.#deps.log.warn({ resources: Object.fromEntries(this.#disconnected) }, 'registration lost; registering again');
    await this.#stop([...this.#disconnected.keys()]);
  }

  async #stop(names: readonly string[] = [...this.#servers.keys()]): Promise<void> {
    const stopping = names.map((name) => this.#servers.get(name)?.stop());
    for (const name of names) {
      this.#servers.delete(name);
      this.#disconnected.delete(name);
    }
    await Promise.all(stopping);
  }
}
