import { stringify } from 'yaml';

/** Data with which a client connects to the server as a user. */
export interface Access {
  readonly server: string;
  /** The certificate authority, PEM. */
  readonly ca: string;
  readonly token: string;
  /** The name of cluster, user and context. Default `plumbline-sandbox`. */
  readonly name?: string;
  readonly namespace?: string;
}

/** The text of a kubeconfig file with embedded certificates and token. */
export function kubeconfig({ server, ca, token, name = 'plumbline-sandbox', namespace }: Access): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, ...(namespace !== undefined && { namespace }) } }],
    'current-context': name,
  });
}
