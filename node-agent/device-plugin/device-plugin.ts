import { join } from 'node:path';
import { KUBELET_SOCKET, PLUGIN_DIRECTORY, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { Logger } from '../../runtime/log.ts';
import { Backoff, sleep } from '../../runtime/time.ts';
import { createProblemLog } from '../telemetry/problem-log.ts';
import { createKubeletWatch } from './kubelet-watch.ts';
import { type BeforeStart, createPluginServer, optionsOf, type PluginServer } from './plugin-server.ts';
import { type AdvertisedResource, socketName } from './resources.ts';

export interface DevicePluginDeps {
  readonly kubeletDir: string;
  /** The initial resources to advertise. */
  readonly resources: readonly AdvertisedResource[];
  readonly beforeStart: BeforeStart;
  readonly log: Logger;
  /** Called after each registration. */
  readonly onRegistration: (resource: string, outcome: 'registered' | 'failed') => void;
}

export interface DevicePlugin {
  /** Replaces the advertised resources; allocated devices stay allocated. */
  advertise(resources: readonly AdvertisedResource[]): void;
  /** Serves every resource and keeps it registered until the signal aborts, then removes the sockets. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Serves one socket for each resource and registers each with every kubelet that appears. A kubelet forgets its plugins
 * when it restarts: it removes their sockets and creates its own again, which triggers a new registration.
 */
export function createDevicePlugin(deps: DevicePluginDeps): DevicePlugin {
  const { log } = deps;
  const directory = join(deps.kubeletDir, PLUGIN_DIRECTORY);
  const kubeletSocket = join(directory, KUBELET_SOCKET);
  const servers = new Map<string, PluginServer>();
  let wanted = deps.resources;
  let wake = () => {};

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
    for (const name of names) servers.delete(name);
    await Promise.all(stopping);
  };

  /** Makes the served resources match the requested ones. */
  const serve = async (signal: AbortSignal): Promise<void> => {
    const now = wanted;
    await stop([...servers.keys()].filter((name) => !now.some((resource) => resource.name === name)));
    const fresh: AdvertisedResource[] = [];
    for (const resource of now) {
      const server = servers.get(resource.name);
      if (server === undefined) fresh.push(resource);
      else if (JSON.stringify(server.resource) !== JSON.stringify(resource)) server.update(resource);
    }
    for (const resource of fresh) {
      const socketPath = join(directory, socketName(resource.name));
      const server = createPluginServer({ socketPath, resource, beforeStart: deps.beforeStart });
      servers.set(resource.name, server);
      await server.start();
    }
    for (const resource of fresh) await register(resource, signal);
    if (fresh.length === 0) return;
    log.info({ resources: fresh.map(({ name }) => name) }, 'device plugin registered with the kubelet');
  };

  return {
    advertise(resources) {
      wanted = resources;
      wake();
    },
    async run(signal) {
      const kubelet = createKubeletWatch(directory, signal);
      const problems = createProblemLog(log);
      const backoff = new Backoff({ first: 0.2, most: 10 });
      while (!signal.aborted) {
        const generation = kubelet.generation();
        if (generation === '') {
          problems.met(`${kubeletSocket} does not exist`, 'waiting for the kubelet; check --kubelet-dir');
          await kubelet.changed(generation);
          continue;
        }
        const served = wanted;
        try {
          await serve(signal);
          backoff.reset();
          problems.gone();
          const asked = new Promise<void>((resolve) => (wake = resolve));
          if (wanted === served) await Promise.race([kubelet.changed(generation), asked]);
          if (kubelet.generation() === generation && !signal.aborted) continue;
        } catch (err) {
          if (signal.aborted) break;
          problems.met(err, 'registering the device plugin failed; retrying');
          await Promise.race([sleep(backoff.next(), signal).catch(() => undefined), kubelet.changed(generation)]);
        }
        await stop([...servers.keys()]);
      }
      await stop([...servers.keys()]);
    },
  };
}
