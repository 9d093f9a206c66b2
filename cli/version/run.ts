import type { KubeClient } from '../../kube/client.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { runningParts, versionsText } from '../doctor/checks/installed.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { endingOf } from '../support/errors.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { KUBEVIRTS, SYSTEM_PODS } from '../support/kinds.ts';
import { readIfAllowed, readOne } from '../support/lists.ts';
import { apiVersion } from '../support/objects.ts';
import { type OutputFormat, print, printMessage } from '../support/output.ts';

interface VersionFlags extends ClusterFlags {
  readonly client?: true;
  readonly output?: OutputFormat;
}

/** Prints the versions. Without a kubeconfig only those of this machine; an unreachable cluster is status 3. */
export async function run(flags: VersionFlags): Promise<void> {
  let cluster: ClusterVersions | undefined;
  try {
    if (!flags.client) cluster = await usingCluster(flags, ({ client }) => readVersions(client));
  } catch (error) {
    const { line, status } = endingOf(error);
    const hasNoCluster = error instanceof CliError && line.startsWith('no kubeconfig found');
    if (!hasNoCluster) {
      printMessage(`plumbline: ${line}`);
      process.exitCode = status === EXIT.findings ? EXIT.unreachable : status;
    }
  }
  const data = { version: packageJson.version, node: process.version, ...(cluster && { cluster }) };
  await print(flags.output, data, {
    text: () => [`plumbline ${data.version}, Node.js ${data.node}`, ...(cluster ? [clusterLine(cluster)] : [])],
  });
}

type ClusterVersions = Awaited<ReturnType<typeof readVersions>>;

export async function readVersions(client: Pick<KubeClient, 'get'>) {
  const [kubernetes, kubevirts, pods] = await Promise.all([
    readOne(client, '/version', apiVersion),
    readIfAllowed(client, ...KUBEVIRTS),
    readIfAllowed(client, ...SYSTEM_PODS),
  ]);
  return {
    kubernetes: kubernetes?.gitVersion ?? null,
    kubevirt: kubevirts?.[0]?.status?.observedKubeVirtVersion ?? null,
    parts: pods === undefined ? null : runningParts(pods).running,
  };
}

function clusterLine({ kubernetes, kubevirt: virt, parts }: ClusterVersions): string {
  const plumblineText = parts === null ? 'Plumbline: you may not read its pods' : versionsText(parts, true);
  return `cluster: ${[plumblineText || 'no Plumbline', `KubeVirt ${virt ?? 'unknown'}`, `Kubernetes ${kubernetes ?? 'unknown'}`].join(', ')}`;
}
