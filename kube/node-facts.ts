import { integralCpus } from '../model/quantity.ts';
import type { NodeFacts } from '../model/report/check.ts';
import type { Node } from './resources.ts';

const ARCH_LABEL = 'kubernetes.io/arch';

/** Extracts from a Node object the facts about its machine: capacity, conditions, labels. */
export function factsOfNode({
  metadata,
  status,
}: {
  readonly metadata: Pick<Node['metadata'], 'labels'>;
  readonly status?: Pick<NonNullable<Node['status']>, 'capacity' | 'nodeInfo'> | undefined;
}): NodeFacts {
  const { cpu } = status?.capacity ?? {};
  const arch = metadata.labels?.[ARCH_LABEL] ?? status?.nodeInfo?.architecture;
  return { cpus: cpu === undefined ? undefined : wholeOrNone(cpu), arch };
}

function wholeOrNone(quantity: string): number | undefined {
  try {
    return integralCpus(quantity);
  } catch {
    return undefined;
  }
}
