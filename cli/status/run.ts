import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { showRepeatedly } from '../support/watch.ts';
import { listedVms, statusLines } from './output.ts';
import { type ClusterStatus, readStatus } from './read.ts';

export interface StatusFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly watch?: number | true;
  readonly output?: OutputFormat;
}

const isQuiet = ({ notes, ...lists }: ClusterStatus) => Object.values(lists).every(({ length }) => length === 0);

/** Once or repeatedly. @param usualSeconds between views without a number in the flags @throws CliError, KubeError */
export function run(flags: StatusFlags, usualSeconds: number): Promise<void> {
  const { output, watch, allNamespaces } = flags;
  const seconds = typeof watch === 'number' ? watch : usualSeconds;
  return usingCluster(flags, (cluster) => {
    const namespace = allNamespaces ? undefined : cluster.namespace;
    return showRepeatedly(output, watch === undefined ? undefined : seconds, {
      read: () => readStatus(cluster, namespace, Date.now()),
      lines: (status, terminal, wide) => statusLines(status, namespace, terminal, wide),
      show: async (status) => {
        await print(output, status, {
          text: (terminal, wide) => statusLines(status, namespace, terminal, wide),
          name: () => namesOf(status, namespace),
        });
        process.exitCode = isQuiet(status) ? EXIT.ok : EXIT.findings;
      },
    });
  });
}

function namesOf(status: ClusterStatus, namespace: string | undefined): string[] {
  return listedVms(status).map((vm) => (namespace === undefined ? `${vm.namespace}/${vm.name}` : `vm/${vm.name}`));
}
