import { at, draftOf, type KubeObject } from '../objects.ts';
import type { DeleteOptions } from './calls.ts';
import { conflict } from './errors.ts';
import { timestamp } from './preparation.ts';
import type { ResourceType } from './resource-types.ts';

/** The effect of a DELETE: mark the object and wait for its kubelet or its finalizers, remove it, or change nothing. */
export type Deletion = { kind: 'mark'; object: KubeObject } | { kind: 'remove' } | { kind: 'none' };

/**
 * Decides the effect of a DELETE.
 * @throws ApiError 409 if a precondition does not hold
 */
export function deletionOf(type: ResourceType, object: KubeObject, options: DeleteOptions, now: number): Deletion {
  checkPreconditions(type, object, options);
  const grace = gracePeriodSeconds(type, object, options);
  const { metadata } = object;
  const held = (metadata.finalizers?.length ?? 0) > 0;
  if (!held && grace === 0) return { kind: 'remove' };
  // A second deletion can only shorten the grace period.
  const before = metadata.deletionGracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && (before ?? 0) <= grace) return { kind: 'none' };
  const marked = draftOf(object);
  marked.metadata.deletionTimestamp = timestamp(now + grace * 1000);
  marked.metadata.deletionGracePeriodSeconds = grace;
  return { kind: 'mark', object: marked };
}

/** Whether an update removed the last finalizer of an object that is being deleted. */
export function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
    (metadata.finalizers?.length ?? 0) === 0
  );
}

/** Seconds of grace. Only pods on a node are deleted gracefully. */
function gracePeriodSeconds(type: ResourceType, object: KubeObject, options: DeleteOptions): number {
  if (type.kind !== 'Pod') return 0;
  const phase = at(object, 'status', 'phase');
  if (!at(object, 'spec', 'nodeName') || phase === 'Failed' || phase === 'Succeeded') return 0;
  const own = at(object, 'spec', 'terminationGracePeriodSeconds');
  return Math.max(0, options.gracePeriodSeconds ?? (typeof own === 'number' ? own : 30));
}

function checkPreconditions(type: ResourceType, { metadata }: KubeObject, { preconditions }: DeleteOptions): void {
  if (preconditions?.uid !== undefined && preconditions.uid !== metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${metadata.uid}`;
    throw conflict(type, metadata.name, why);
  }
  const version = preconditions?.resourceVersion;
  if (version !== undefined && version !== metadata.resourceVersion) {
    const why = `Precondition failed: ResourceVersion in precondition: ${version}, ResourceVersion in object meta: ${metadata.resourceVersion}`;
    throw conflict(type, metadata.name, why);
  }
}
