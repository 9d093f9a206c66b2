import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { readVerifyFacts } from './facts.ts';
import { verificationLines } from './lines.ts';
import { verifyMasks } from './survey.ts';

export interface VerifyFlags extends ClusterFlags {
  readonly output?: OutputFormat;
}

/** Prints which nodes can host each VM with a CPU mask. @throws CliError, KubeError */
export function run(flags: VerifyFlags): Promise<void> {
  return usingCluster(flags, async ({ client }) => {
    const found = verifyMasks(await readVerifyFacts(client, flags.namespace, Date.now()));
    await print(flags.output, found, {
      text: ({ width }) => verificationLines(found, width),
      wide: ({ width }) => verificationLines(found, width, true),
      name: () =>
        found.vms.flatMap(({ kind, name, nodes }) => (nodes.length === 0 ? [`${kind.toLowerCase()}/${name}`] : [])),
    });
    process.exitCode = found.withoutNode === 0 ? EXIT.ok : EXIT.findings;
  });
}
