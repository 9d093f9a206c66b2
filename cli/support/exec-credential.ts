import { spawnSync } from 'node:child_process';
import type { Authenticator } from '@kubernetes/client-node/dist/auth.js';
import { bufferFromFileOrString } from '@kubernetes/client-node/dist/config.js';
import type { Cluster } from '@kubernetes/client-node/dist/config_types.js';
import * as z from 'zod';
import { oneLine } from './errors.ts';
import { CliError, EXIT } from './exit-status.ts';

export const execPlugin = z.object({
  apiVersion: z.string(),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  installHint: z.string().nullish(),
  provideClusterInfo: z.boolean().nullish(),
});
export type ExecPlugin = z.infer<typeof execPlugin>;

const answer = z.object({
  status: z.object({
    token: z.string().min(1).nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish(),
  }),
});

interface ExecCredential {
  readonly token: string | undefined;
  /** PEM. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970 after which to run the plugin again. */
  readonly expires: number;
}

/** Bytes of a plugin's output. */
const LARGEST = 1024 * 1024;

/**
 * Gets credentials from a plugin (client.authentication.k8s.io), and again when they have expired, because
 * `top --watch` may outlive a token. client-node's own plugin runner is not suitable (docs/adr/0001).
 * @throws CliError if the plugin is missing, fails or prints something else
 */
export function createExecAuthenticator(plugin: ExecPlugin, cluster: Cluster): Authenticator['applyAuthentication'] {
  let known: ExecCredential | undefined;
  return async (_, options) => {
    if (known === undefined || known.expires <= Date.now()) known = execCredential(plugin, cluster);
    const { token, cert, key } = known;
    if (cert !== undefined) options.cert = cert;
    if (key !== undefined) options.key = key;
    if (token !== undefined) options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
  };
}

/**
 * Runs the plugin, which may prompt the user on the terminal.
 * Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
 */
function execCredential(plugin: ExecPlugin, cluster: Cluster): ExecCredential {
  const { command, args, env, apiVersion, installHint } = plugin;
  const info = {
    apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: process.stdin.isTTY === true,
      ...(plugin.provideClusterInfo === true && { cluster: infoOf(cluster) }),
    },
  };
  const added = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const ran = spawnSync(command, args ?? [], {
    env: { ...process.env, ...added, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    stdio: ['inherit', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: LARGEST,
  });
  const failed = (how: string) =>
    new CliError(EXIT.unreachable, `the credential plugin ${command} of the kubeconfig ${how}`);
  if ((ran.error as NodeJS.ErrnoException | undefined)?.code === 'ENOBUFS') {
    throw failed(`returned more than ${LARGEST} bytes`);
  }
  if (ran.error) throw failed(`cannot run: ${ran.error.message}${installHint ? `; ${oneLine(installHint)}` : ''}`);
  if (ran.status !== 0) throw failed(`failed (status ${ran.status})`);
  const found = answer.safeParse(parseJson(ran.stdout));
  if (!found.success) throw failed('did not return an ExecCredential');
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = found.data.status;
  const expires = expirationTimestamp ? Date.parse(expirationTimestamp) : Number.POSITIVE_INFINITY;
  return {
    token: token ?? undefined,
    cert: clientCertificateData ?? undefined,
    key: clientKeyData ?? undefined,
    expires: Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires,
  };
}

function infoOf({ server, caFile, caData, tlsServerName, skipTLSVerify }: Cluster) {
  const ca = bufferFromFileOrString(caFile, caData)?.toString('base64');
  return {
    server,
    ...(ca !== undefined && { 'certificate-authority-data': ca }),
    ...(tlsServerName !== undefined && { 'tls-server-name': tlsServerName }),
    ...(skipTLSVerify && { 'insecure-skip-tls-verify': true }),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
