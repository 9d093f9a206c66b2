import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromSource } from '../../support/daemon-process.ts';

/** The agent from its source, as arguments of Node.js. */
export const FROM_SOURCE = fromSource('node-agent/main.ts');

/** The flag that puts the agent's directories below this one. The default ones belong to this machine. */
export function placesIn(directory: string): string[] {
  const host = ['var/lib/kubelet', 'var/lib/plumbline', 'var/run/openvswitch', 'run/plumbline', 'sys/fs/cgroup'];
  for (const path of [...host, 'etc/cni/net.d', 'opt/cni/bin']) mkdirSync(join(directory, path), { recursive: true });
  return ['--host-root', directory];
}

/** Writes a kubeconfig of this API server, by default one that does not exist. @returns its path */
export function writeKubeconfig(directory: string, server = 'http://127.0.0.1:1'): string {
  const path = join(directory, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { token: 'none' } }],
    'current-context': 'x',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
