import { statSync } from 'node:fs';
import { join } from 'node:path';
import { KUBELET_SOCKET, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { Logger } from '../../runtime/log.ts';
import { Backoff, sleep } from '../../runtime/time.ts';
import { untilAborted } from '../duty.ts';
import type { AgentMetrics } from '../metrics.ts';
import { createProblemLog } from '../problem-log.ts';
import { watchDirectory } from '../watch-directory.ts';
import { type BeforeStart, createPluginServer, optionsOf, type PluginServer } from './plugin-server.ts';
import { type AdvertisedResource, socketName } from './resources.ts';

/** The directory of device plugins below the kubelet's root. */
export const PLUGIN_DIRECTORY = 'device-plugins';

export interface DevicePluginDeps {
  readonly kubeletDir: string;
  readonly resources: readonly AdvertisedResource[];
  readonly beforeStart: BeforeStart;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

export interface DevicePlugin {
  /** The duty: serves every resource and keeps it registered. A kubelet that starts empties the directory first. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Serves one socket for each resource and registers each with every kubelet that appears: a kubelet forgets its plugins
 * when it restarts, removes their sockets and makes its own anew, which is the sign to start over.
 */
export function createDevicePlugin(deps: DevicePluginDeps): DevicePlugin {
  const { resources, log, metrics } = deps;
  const directory = join(deps.kubeletDir, PLUGIN_DIRECTORY);
  const kubeletSocket = join(directory, KUBELET_SOCKET);

  const beforeStart: BeforeStart = async (resource, ids, signal) => {
    try {
      await deps.beforeStart(resource, ids, signal);
      metrics.preStarts.inc({ resource, outcome: 'passed' });
    } catch (err) {
      metrics.preStarts.inc({ resource, outcome: 'refused' });
      log.warn({ err, resource, ids }, 'a container is kept from starting');
      throw err;
    }
  };

  const register = async (resource: AdvertisedResource, signal: AbortSignal): Promise<void> => {
    const request = { endpoint: socketName(resource.name), resourceName: resource.name, options: optionsOf(resource) };
    try {
      await registerPlugin(kubeletSocket, request, { signal });
      metrics.registrations.inc({ resource: resource.name, outcome: 'registered' });
    } catch (error) {
      metrics.registrations.inc({ resource: resource.name, outcome: 'failed' });
      throw error;
    }
  };

  /** Serves and registers everything once, for the kubelet that is there now. */
  const serve = async (signal: AbortSignal): Promise<PluginServer[]> => {
    const servers = resources.map((resource) =>
      createPluginServer({ socketPath: join(directory, socketName(resource.name)), resource, beforeStart }),
    );
    try {
      for (const server of servers) await server.start();
      for (const resource of resources) await register(resource, signal);
      log.info({ resources: resources.map(({ name }) => name) }, 'device plugin registered with the kubelet');
      return servers;
    } catch (error) {
      await Promise.all(servers.map((server) => server.stop()));
      throw error;
    }
  };

  return {
    async run(signal) {
      const kubelet = createKubeletWatch(directory, kubeletSocket, signal);
      const problems = createProblemLog(log);
      const backoff = new Backoff({ first: 0.2, most: 10 });
      let servers: PluginServer[] = [];
      while (!signal.aborted) {
        const generation = kubelet.generation();
        if (generation === '') {
          problems.met(`${kubeletSocket} does not exist`, 'the device plugin waits for the kubelet (--kubelet-dir)');
          await kubelet.changed(generation);
          continue;
        }
        try {
          servers = await serve(signal);
          backoff.reset();
          problems.gone();
          await kubelet.changed(generation);
        } catch (err) {
          if (signal.aborted) break;
          problems.met(err, 'the device plugin is not registered, trying on');
          await Promise.race([sleep(backoff.next(), signal).catch(() => undefined), kubelet.changed(generation)]);
        }
        await Promise.all(servers.map((server) => server.stop()));
        servers = [];
      }
    },
  };
}

/** Tells one kubelet.sock from the next by its inode. */
function createKubeletWatch(directory: string, socketPath: string, signal: AbortSignal) {
  let current = '';
  let wake = () => {};
  const look = () => {
    const found = statSync(socketPath, { throwIfNoEntry: false });
    const now = found === undefined ? '' : `${found.ino}:${found.ctimeMs}`;
    if (now === current) return;
    current = now;
    wake();
  };
  watchDirectory({
    path: directory,
    signal,
    onChange: (name) => {
      if (name === undefined || name === KUBELET_SOCKET) look();
    },
  });
  return {
    /** The socket that is there now: looked at, since its event may be on its way. */
    generation(): string {
      look();
      return current;
    },
    /** Resolves when the socket is another than that of `generation`, or the signal aborts. */
    async changed(generation: string): Promise<void> {
      if (current !== generation || signal.aborted) return;
      await Promise.race([untilAborted(signal), new Promise<void>((resolve) => (wake = resolve))]);
    },
  };
}
