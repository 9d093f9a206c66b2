import { parseQuantity } from '../../model/quantity.ts';
import type { Pod } from '../objects.ts';

/**
 * The pod's QoS class. Guaranteed: every container, including init containers, has limits of cpu and memory and equal
 * requests. Source: pkg/apis/core/v1/helper/qos/qos.go.
 */
export function qosClass({ spec }: Pod): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  let asksForAnything = false;
  let guaranteed = true;
  for (const { resources } of containers) {
    for (const name of ['cpu', 'memory']) {
      const request = amount(resources?.requests?.[name]);
      const limit = amount(resources?.limits?.[name]);
      if (request > 0n || limit > 0n) asksForAnything = true;
      if (limit === 0n || request !== limit) guaranteed = false;
    }
  }
  if (!asksForAnything) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

/** Malformed quantities count as zero here: validation refuses them afterwards. */
function amount(text: string | undefined): bigint {
  try {
    return text === undefined ? 0n : parseQuantity(text).nano;
  } catch {
    return 0n;
  }
}
