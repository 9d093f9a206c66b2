import { join } from 'node:path';
import { KUBELET_SOCKET, PLUGIN_DIRECTORY, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, monotonicSeconds, sleep } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { type BeforeStart, createPluginServer, optionsOf, type PluginServer } from './plugin-server.ts';
import { type AdvertisedResource, kubeletGeneration, socketName } from './resources.ts';

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
 */
export function createDevicePlugin(deps: DevicePluginDeps) {
  const { log } = deps;
  const directory = join(deps.kubeletDir, PLUGIN_DIRECTORY);
  const kubeletSocket = join(directory, KUBELET_SOCKET);
  const servers = new Map<string, PluginServer>();
  let desired: readonly AdvertisedResource[] = [];
  const changes = new ChangeSignal();
  const lost = new Map<string, string>();

  const checkSockets = () => {
    for (const [name, server] of servers) if (!server.isInPlace()) lost.set(name, 'its socket was removed or replaced');
  };

  const register = async (resource: AdvertisedResource, signal: AbortSignal): Promise<void> => {
    const request = { endpoint: socketName(resource.name), resourceName: resource.name, options: optionsOf(resource) };
    try {
      await registerPlugin(kubeletSocket, request, { signal });
      deps.onRegistration(resource.name, 'registered');
    } catch (error) {
      deps.onRegistration(resource.name, 'failed');
      throw error;
    }
  };

  const stop = async (names: readonly string[]): Promise<void> => {
    const stopping = names.map((name) => servers.get(name)?.stop());
    for (const name of names) {
      servers.delete(name);
      lost.delete(name);
    }
    await Promise.all(stopping);
  };

  const serve = async (signal: AbortSignal): Promise<void> => {
    const now = desired;
    await stop([...servers.keys()].filter((name) => !now.some((resource) => resource.name === name)));
    const fresh: AdvertisedResource[] = [];
    for (const resource of now) {
      const server = servers.get(resource.name);
      if (server === undefined) fresh.push(resource);
      else if (JSON.stringify(server.resource) !== JSON.stringify(resource)) server.update(resource);
    }
    for (const resource of fresh) {
      const socketPath = join(directory, socketName(resource.name));
      const server = createPluginServer({
        socketPath,
        resource,
        beforeStart: deps.beforeStart,
        onUnwatched: () => {
          lost.set(resource.name, 'the kubelet ended its watch');
          changes.set();
        },
      });
      servers.set(resource.name, server);
      await server.start();
    }
    for (const resource of fresh) await register(resource, signal);
    if (fresh.length === 0) return;
    log.info({ resources: fresh.map(({ name }) => name) }, 'device plugin registered with the kubelet');
  };

  const losses = new Backoff({ first: 0.2, most: 4 });
  let lostAt = 0;
  /** Stops what was lost, so that the next `serve` starts and registers it again. */
  const stopLost = async (signal: AbortSignal): Promise<void> => {
    if (lost.size === 0) return;
    if (monotonicSeconds() - lostAt > LASTING_SECONDS) losses.reset();
    lostAt = monotonicSeconds();
    await sleep(losses.next(), signal);
    log.warn({ resources: Object.fromEntries(lost) }, 'registration lost; registering again');
    await stop([...lost.keys()]);
  };

  return {
    /** Replaces the advertised resources; allocated devices stay allocated. */
    advertise(resources: readonly AdvertisedResource[]) {
      desired = resources;
      changes.set();
    },
    async run(signal: AbortSignal) {
      const onChange = () => {
        checkSockets();
        changes.set();
      };
      watchDirectory({ path: directory, signal, onChange });
      const problems = new ProblemLog(log);
      const backoff = new Backoff({ first: 0.2, most: 4 });
      let served = '';
      while (!signal.aborted) {
        // Before the first read, so that no change is missed.
        changes.clear();
        const generation = kubeletGeneration(directory);
        if (generation !== served) await stop([...servers.keys()]);
        served = generation;
        if (generation === '') {
          problems.failed(`${kubeletSocket} does not exist`, 'waiting for the kubelet; check --kubelet-dir');
          await changes.wait(signal);
          continue;
        }
        try {
          await stopLost(signal);
          await serve(signal);
          backoff.reset();
          problems.recovered();
          await changes.wait(signal);
        } catch (err) {
          if (signal.aborted) break;
          problems.failed(err, 'registering the device plugin failed; retrying');
          await stop([...servers.keys()]);
          await sleep(backoff.next(), signal).catch(() => undefined);
        }
      }
      await stop([...servers.keys()]);
    },
  };
}
