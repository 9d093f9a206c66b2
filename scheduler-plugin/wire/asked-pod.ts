import * as z from 'zod';
import { affinity, nullToUndefined, pod } from '../../kube/resources.ts';

/** Absent, or in an unknown form, which is ignored. */
const present = z.unknown().optional();
const volume = z.object({ persistentVolumeClaim: present, ephemeral: present });
/** Preferred affinity or anti-affinity to pods. */
const podTerms = z
  .object({
    preferredDuringSchedulingIgnoredDuringExecution: z
      .array(z.object({ podAffinityTerm: z.object({ topologyKey: z.string() }) }))
      .nullish(),
  })
  .nullish()
  .catch(undefined);
const spreadConstraint = z.object({ topologyKey: z.string(), whenUnsatisfiable: z.string() });

/** The pod of a filter call, with the fields that determine how long and for which nodes kube-scheduler may want it. */
export const askedPod = pod.extend({
  spec: pod.shape.spec.extend({
    volumes: z.array(volume).nullish().catch(undefined),
    affinity: affinity
      .extend({ podAffinity: podTerms, podAntiAffinity: podTerms })
      .nullish()
      .transform(nullToUndefined),
    topologySpreadConstraints: z.array(spreadConstraint).nullish().catch(undefined),
    resourceClaims: z.array(z.unknown()).nullish().catch(undefined),
  }),
});
export type AskedPod = z.infer<typeof askedPod>;

/** Whether kube-scheduler may wait before it binds the pod, until its volumes and dynamic resources are ready. */
export function waitsToBind({ spec: { volumes, resourceClaims } }: AskedPod): boolean {
  const hasClaim = volumes?.some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral) ?? false;
  return hasClaim || (resourceClaims?.length ?? 0) > 0;
}

/** Maximum topology keys to consider: each may add a node in each of its domains. */
const MOST_KEYS = 4;

/**
 * The keys of node labels in the pod's soft constraints: preferences that kube-scheduler weighs among the remaining
 * nodes.
 */
export function softTopologyKeys({ spec }: AskedPod): readonly string[] {
  const { affinity: affinities, topologySpreadConstraints: spreads } = spec;
  if (affinities == null && spreads == null) return [];
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinities ?? {};
  const keys = new Set<string>();
  for (const { topologyKey, whenUnsatisfiable } of spreads ?? []) {
    if (whenUnsatisfiable === 'ScheduleAnyway') keys.add(topologyKey);
  }
  for (const terms of [podAffinity, podAntiAffinity]) {
    for (const { podAffinityTerm } of terms?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
      keys.add(podAffinityTerm.topologyKey);
    }
  }
  for (const { preference } of nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
    for (const { key } of preference.matchExpressions ?? []) keys.add(key);
  }
  return [...keys].slice(0, MOST_KEYS);
}
