import { statSync } from 'node:fs';
import { join } from 'node:path';
import { KUBELET_SOCKET } from '../../kube/kubelet-api/device-plugin-client.ts';
import { watchDirectory } from '../files/watch-directory.ts';

/** The directory of device plugins below the kubelet's root. */
export const PLUGIN_DIRECTORY = 'device-plugins';

/**
 * Identifies one run of the kubelet by the registration socket that it creates in that directory; '' without a socket.
 */
export function kubeletGeneration(directory: string): string {
  const socket = statSync(join(directory, KUBELET_SOCKET), { throwIfNoEntry: false });
  return socket === undefined ? '' : `${socket.ino}:${socket.ctimeMs}`;
}

/** Watches a kubelet's directory of device plugins. */
export function createKubeletWatch(directory: string, signal: AbortSignal) {
  let current = '';
  let waiting: (() => void)[] = [];
  const wakeAll = () => {
    for (const wake of waiting) wake();
    waiting = [];
  };
  const look = () => {
    const now = kubeletGeneration(directory);
    if (now === current) return;
    current = now;
    wakeAll();
  };
  signal.addEventListener('abort', wakeAll, { once: true });
  watchDirectory({
    path: directory,
    signal,
    onChange: (name) => {
      if (name === undefined || name === KUBELET_SOCKET) look();
    },
  });
  return {
    /** The generation of the current socket, or ''. It reads the directory, since the event may still be pending. */
    generation() {
      look();
      return current;
    },
    /** Resolves when the socket differs from that of `generation`, or the signal aborts. */
    async changed(generation: string) {
      if (current !== generation || signal.aborted) return;
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
