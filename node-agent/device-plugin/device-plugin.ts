import { join } from 'node:path';
import { KUBELET_SOCKET, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { Logger } from '../../runtime/log.ts';
import { Backoff, sleep } from '../../runtime/time.ts';
import { createProblemLog } from '../telemetry/problem-log.ts';
import { createKubeletWatch, PLUGIN_DIRECTORY } from './kubelet-watch.ts';
import { withoutHint } from './near-resources.ts';
import { type BeforeStart, createPluginServer, optionsOf, type PluginServer } from './plugin-server.ts';
import { type AdvertisedResource, socketName } from './resources.ts';

export interface DevicePluginDeps {
  readonly kubeletDir: string;
  /** What to advertise at first. */
  readonly resources: readonly AdvertisedResource[];
  readonly beforeStart: BeforeStart;
  readonly log: Logger;
  /** Called when a kubelet has taken the place of another, before anything is registered with it. */
  readonly onKubelet: () => void;
  /** Called after each registration. */
  readonly onRegistration: (resource: string, outcome: 'registered' | 'failed') => void;
}

export interface DevicePlugin {
  /** Advertises these from now on; the kubelet keeps what it gave away. */
  advertise(resources: readonly AdvertisedResource[]): void;
  /** Serves every resource and keeps it registered until the signal aborts, then takes the sockets away. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Serves one socket for each resource and registers each with every kubelet that appears: a kubelet forgets its plugins
 * when it restarts, removes their sockets and creates its own again, which is the sign to start over.
 */
export function createDevicePlugin(deps: DevicePluginDeps): DevicePlugin {
  const { log } = deps;
  const directory = join(deps.kubeletDir, PLUGIN_DIRECTORY);
  const kubeletSocket = join(directory, KUBELET_SOCKET);
  const servers = new Map<string, PluginServer>();
  let wanted = deps.resources;
  let wake = () => {};
  /** The run of the kubelet that was served last. */
  let known: string | undefined;

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

  /** Another kubelet than before may be configured otherwise, so no hint goes there that was meant for its predecessor. */
  const meet = (generation: string): void => {
    const isAnother = known !== undefined && known !== generation;
    known = generation;
    if (!isAnother) return;
    wanted = wanted.map(withoutHint);
    deps.onKubelet();
  };

  /** Makes what is served what is wanted. */
  const serve = async (generation: string, signal: AbortSignal): Promise<void> => {
    meet(generation);
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
          problems.met(`${kubeletSocket} does not exist`, 'the device plugin waits for the kubelet (--kubelet-dir)');
          await kubelet.changed(generation);
          continue;
        }
        const served = wanted;
        try {
          await serve(generation, signal);
          backoff.reset();
          problems.gone();
          const asked = new Promise<void>((resolve) => (wake = resolve));
          if (wanted === served) await Promise.race([kubelet.changed(generation), asked]);
          if (kubelet.generation() === generation && !signal.aborted) continue;
        } catch (err) {
          if (signal.aborted) break;
          problems.met(err, 'the device plugin is not registered, trying on');
          await Promise.race([sleep(backoff.next(), signal).catch(() => undefined), kubelet.changed(generation)]);
        }
        await stop([...servers.keys()]);
      }
      await stop([...servers.keys()]);
    },
  };
}
