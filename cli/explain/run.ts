import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { type OutputFormat, print } from '../support/output.ts';
import type { ExtenderChoice } from './ask-extender.ts';
import { explain } from './explain.ts';
import { explanationLines } from './lines.ts';
import { nearestLines, readNearest } from './nearest.ts';
import { parseReference } from './reference.ts';
import { readSubject } from './subject.ts';

export interface ExplainFlags extends ClusterFlags, ExtenderChoice {
  readonly output?: OutputFormat;
}

/** Prints why a VM or pod does not run, or where it runs. @throws CliError, KubeError */
export function run(kind: string, name: string | undefined, flags: ExplainFlags): Promise<void> {
  const reference = parseReference(kind, name, flags.namespace);
  return usingCluster(flags, async (cluster) => {
    const subject = await readSubject(cluster.client, reference, cluster.namespace);
    const explanation = await explain(cluster, subject, flags, Date.now());
    const isForPeople = flags.output === undefined || flags.output === 'wide';
    const nearest = isForPeople ? await readNearest(cluster.client, explanation) : undefined;
    const nearestTo = (width: number) => (nearest === undefined ? [] : nearestLines(nearest, width));
    await print(flags.output, explanation, {
      text: ({ width }) => [...explanationLines(explanation, width), ...nearestTo(width)],
      wide: ({ width }) => [...explanationLines(explanation, Number.POSITIVE_INFINITY, true), ...nearestTo(width)],
      name: () => (explanation.pod === undefined ? [] : [`pod/${explanation.pod}`]),
    });
  });
}
