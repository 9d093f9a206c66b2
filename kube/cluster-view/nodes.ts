import { resultOrNone } from '../model/json.ts';
import { integralCpus } from '../model/quantity.ts';
import type { NodeFacts } from '../model/report/check.ts';
import type { Node } from './resources.ts';

const ARCH_LABEL = 'kubernetes.io/arch';

/** Extracts from a Node object the facts about its machine. Device plugins name their resources with a prefix. */
export function factsOfNode({
  metadata,
  status,
}: {
  readonly metadata: Pick<Node['metadata'], 'labels'>;
  readonly status?: Pick<NonNullable<Node['status']>, 'capacity' | 'nodeInfo'> | undefined;
}): NodeFacts {
  const devices = status?.capacity && Object.entries(status.capacity).filter(([resource]) => resource.includes('/'));
  const arch = metadata.labels?.[ARCH_LABEL] ?? status?.nodeInfo?.architecture;
  return {
    cpus: wholeOrNone(status?.capacity?.['cpu'] ?? ''),
    capacity: devices && new Map(devices.map(([resource, count]) => [resource, wholeOrNone(count) ?? 0])),
    arch,
  };
}

/** Undefined if the text is not a quantity, or not whole. */
export function wholeOrNone(quantity: string): number | undefined {
  return resultOrNone(() => integralCpus(quantity));
}
