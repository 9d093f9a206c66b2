import * as z from 'zod';
import { extenderVerdict } from '../../console/server/explanation.ts';
import { askInCluster } from '../extender/ask.ts';
import { askAddress } from '../extender/ask-address.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import type { NodeOpinion, Opinions } from './opinion.ts';

const answer = z.object({ active: z.boolean(), nodes: z.array(extenderVerdict) });

export interface ExtenderChoice {
  /** --extender: its address; undefined: through the API server. */
  readonly extender?: string | undefined;
}

export type Asked = { readonly opinions: Opinions } | { readonly whyNot: string };

/**
 * Queries the extender about a pod. If it is not reachable through the API server, the result says why. An address from
 * the user must respond.
 * @param pod namespace/name
 * @throws CliError if the given address does not respond; KubeError
 */
export async function askExtender(cluster: ClusterAccess, pod: string, choice: ExtenderChoice): Promise<Asked> {
  if (choice.extender !== undefined) {
    const document = await askAddress(choice.extender, pod);
    return { opinions: opinionsOf(document, choice.extender) };
  }
  const asked = await askInCluster(cluster, { pod });
  if ('missing' in asked) return { whyNot: asked.why };
  try {
    return { opinions: opinionsOf(asked.answer, 'the extender') };
  } catch (error) {
    if (error instanceof CliError) return { whyNot: error.message };
    throw error;
  }
}

function opinionsOf(document: unknown, who: string): Opinions {
  const found = answer.safeParse(document);
  if (!found.success) throw new CliError(EXIT.unreachable, `${who} did not answer as a Plumbline extender`);
  const { active, nodes } = found.data;
  const opinions = nodes.map((one): NodeOpinion => {
    if (one.fits) return one;
    const { node, kind, text, reason: detail, missing } = one;
    return { node, fits: false, kind, text, detail, missing };
  });
  const notes = active
    ? []
    : ['a standby of the extender answered: it does not know the reservations of pods in flight'];
  return { source: 'extender', nodes: opinions, notes };
}
