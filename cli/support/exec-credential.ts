import { spawnSync } from 'node:child_process';
import * as z from 'zod';
import { oneLine } from './errors.ts';
import { CliError, EXIT } from './exit-status.ts';
import type { ChosenContext, ExecPlugin } from './kubeconfig.ts';

const answer = z.object({
  status: z.object({
    token: z.string().min(1).nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish(),
  }),
});

export interface ExecCredential {
  readonly token: string | undefined;
  /** PEM. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970 after which it must be asked for again. */
  readonly expires: number;
}

/**
 * Runs a kubeconfig's credential plugin (client.authentication.k8s.io), which may ask the user on the terminal.
 * Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
 * @throws CliError if it is missing, fails or answers something else
 */
export function execCredential(plugin: ExecPlugin, cluster: ChosenContext['cluster']): ExecCredential {
  const { command, args, env, apiVersion, installHint } = plugin;
  const info = {
    apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: process.stdin.isTTY === true,
      ...(plugin.provideClusterInfo === true && {
        cluster: { server: cluster.server, 'certificate-authority-data': cluster['certificate-authority-data'] },
      }),
    },
  };
  const added = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const ran = spawnSync(command, args ?? [], {
    env: { ...process.env, ...added, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    stdio: ['inherit', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 1024 * 1024,
  });
  if (ran.error) {
    const hint = installHint ? `; ${oneLine(installHint)}` : '';
    throw failed(`the credential plugin ${command} of the kubeconfig cannot be run: ${ran.error.message}${hint}`);
  }
  if (ran.status !== 0)
    throw failed(`the credential plugin ${command} of the kubeconfig failed (status ${ran.status})`);
  const found = answer.safeParse(parseJson(ran.stdout));
  if (!found.success) throw failed(`the credential plugin ${command} of the kubeconfig answered no ExecCredential`);
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = found.data.status;
  const expires = expirationTimestamp ? Date.parse(expirationTimestamp) : Number.POSITIVE_INFINITY;
  return {
    token: token ?? undefined,
    cert: clientCertificateData ?? undefined,
    key: clientKeyData ?? undefined,
    expires: Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const failed = (message: string) => new CliError(EXIT.unreachable, message);
