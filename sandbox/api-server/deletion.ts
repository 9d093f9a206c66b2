import { at, type KubeObject } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';
import type { DeleteOptions } from './call.ts';
import { assertSame } from './errors.ts';
import { timestamp } from './preparation.ts';

/** A marked object waits for its kubelet or its finalizers. */
type Deletion = { kind: 'mark'; object: KubeObject } | { kind: 'remove' } | { kind: 'none' };

export function deletionOf(type: ResourceType, object: KubeObject, options: DeleteOptions): Deletion {
  const { uid, resourceVersion } = options.preconditions ?? {};
  assertSame(type, object.metadata.name, 'UID', uid, object.metadata.uid);
  assertSame(type, object.metadata.name, 'ResourceVersion', resourceVersion, object.metadata.resourceVersion);
  const grace = gracePeriodSeconds(type, object, options);
  const { metadata } = object;
  const hasFinalizers = (metadata.finalizers?.length ?? 0) > 0;
  if (!hasFinalizers && grace === 0) return { kind: 'remove' };
  const before = metadata.deletionGracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && (before ?? 0) <= grace) return { kind: 'none' };
  const marked = structuredClone(object);
  marked.metadata.deletionTimestamp = timestamp(Date.now() + grace * 1000);
  marked.metadata.deletionGracePeriodSeconds = grace;
  return { kind: 'mark', object: marked };
}

export function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
    (metadata.finalizers?.length ?? 0) === 0
  );
}

function gracePeriodSeconds(type: ResourceType, object: KubeObject, options: DeleteOptions): number {
  if (type.kind !== 'Pod') return 0;
  const phase = at(object, 'status', 'phase');
  if (!at(object, 'spec', 'nodeName') || phase === 'Failed' || phase === 'Succeeded') return 0;
  const podGracePeriod = at(object, 'spec', 'terminationGracePeriodSeconds');
  return Math.max(0, options.gracePeriodSeconds ?? (typeof podGracePeriod === 'number' ? podGracePeriod : 30));
}
