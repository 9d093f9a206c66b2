import * as z from 'zod';
import { name } from '../../kube/bounds.ts';
import { objectMeta } from '../../kube/resources.ts';
import { instanceConditions } from '../../kube/virtual-machines.ts';
import { type InstanceFacts, pauseOf } from '../../model/vm-state/facts.ts';

/** A VMI whose guest is paused. */
export interface PausedInstance {
  readonly node: string;
  readonly pause: NonNullable<InstanceFacts['pause']>;
}

export const watchedInstance = z.object({
  metadata: objectMeta,
  status: z.object({ nodeName: name.nullish(), conditions: instanceConditions }).nullish(),
});

/** Undefined for a VMI whose guest is not paused: nearly all, which are not stored. */
export function pausedInstance({ metadata, status }: z.infer<typeof watchedInstance>): PausedInstance | undefined {
  const pause = pauseOf({ metadata, status });
  const node = status?.nodeName;
  return pause === undefined || !node ? undefined : { node, pause };
}
