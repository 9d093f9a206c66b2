import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
