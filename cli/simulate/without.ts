import { drainData, drainLines } from '../drain/output.ts';
import { readDrain } from '../drain/read.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';

/** Prints what a drain of these nodes would do with their VMs. @param list names, separated by commas @throws CliError, KubeError */
export async function runWithout(list: string, flags: ClusterFlags, output: OutputFormat | undefined): Promise<void> {
  const names = [...new Set(list.split(',').filter((name) => name !== ''))];
  if (names.length === 0) throw usageError('--without needs names of nodes, separated by commas');
  const drain = await usingCluster(flags, ({ client }) => readDrain(client, names, Date.now()));
  const data = drainData(drain);
  await print(output, data, { text: ({ width }) => drainLines(drain, width) });
  process.exitCode = data.allMigrate ? EXIT.ok : EXIT.findings;
}
