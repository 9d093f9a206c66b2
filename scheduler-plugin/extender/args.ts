import * as z from 'zod';
import { list, listOrNone, MAX_NAME_CHARACTERS, map, name, qualifiedName, uid, word } from '../../kube/bounds.ts';
import { affinity, orUndefined, pod } from '../../kube/resources.ts';
import { issuesText, PlumblineError } from '../../model/errors.ts';
import { limitAmounts } from '../cluster/pod-needs.ts';
import type { FilterOutcome } from '../filter/filter.ts';

/** kube-scheduler's extender protocol, without JSON tags. Source: k8s.io/kube-scheduler/extender/v1/types.go. */

/** The answer has the message in the protocol's own Error field. */
export class ArgsError extends PlumblineError {
  constructor(message: string) {
    super('extender-args', message);
  }
}

const MAX_NODES = 20_000;
const MAX_LIST_ITEMS = 1024;

/** Absent, or in an unknown form, which is ignored. */
const present = z.unknown().optional();
const volume = z.object({ persistentVolumeClaim: present, ephemeral: present });
/** Terms with an unknown shape are ignored. */
const podTerms = z
  .object({
    preferredDuringSchedulingIgnoredDuringExecution: listOrNone(
      z.object({ podAffinityTerm: z.object({ topologyKey: qualifiedName }) }),
      MAX_LIST_ITEMS,
    ),
  })
  .nullish()
  .catch(undefined);
const spreadConstraint = z.object({ topologyKey: qualifiedName, whenUnsatisfiable: word });

export const schedulingPod = pod
  .extend({
    spec: pod.shape.spec.extend({
      volumes: listOrNone(volume, MAX_LIST_ITEMS),
      affinity: orUndefined(affinity.extend({ podAffinity: podTerms, podAntiAffinity: podTerms })),
      topologySpreadConstraints: listOrNone(spreadConstraint, MAX_LIST_ITEMS),
      resourceClaims: listOrNone(z.object({}), MAX_LIST_ITEMS),
      schedulingGroup: present,
      workloadRef: present,
    }),
  })
  .superRefine(limitAmounts);
export type SchedulingPod = z.infer<typeof schedulingPod>;

const identified = z.object({ metadata: z.object({ uid: z.string().min(1) }) });
const nodeName = z.string().max(MAX_NAME_CHARACTERS);
/** z.array would create an object for each of thousands of names: a sixth of the memory that a call leaves behind. */
export const nodeNames = z.custom<readonly string[]>(
  (value) =>
    Array.isArray(value) &&
    value.length <= MAX_NODES &&
    value.every((name) => typeof name === 'string' && name.length <= MAX_NAME_CHARACTERS),
  `expected a list of at most ${MAX_NODES} names of at most ${MAX_NAME_CHARACTERS} characters`,
);
const node = z.looseObject({ metadata: z.looseObject({ name: nodeName }) });
export type NodeObject = z.infer<typeof node>;

/** For a pod that exceeds a limit or has an unknown form. No later attempt would read it. */
export class UnreadablePod extends PlumblineError {
  constructor(message: string) {
    super('unreadable-pod', `the pod cannot be read: ${message}`);
  }
}

const extenderArgs = z.object({
  Pod: z.unknown(),
  NodeNames: nodeNames.nullish(),
  Nodes: z.object({ items: list(node, MAX_NODES).nullish() }).nullish(),
});

export type ExtenderArgs = Readonly<ReturnType<typeof parseExtenderArgs>>;

/** @throws ArgsError if the body is not ExtenderArgs, has both or neither of Nodes and NodeNames, or no uid */
export function parseExtenderArgs(body: unknown) {
  const { Pod, NodeNames, Nodes } = parseBody(extenderArgs, body, 'ExtenderArgs');
  // From a scheduler with nodeCacheCapable: false.
  const nodes = Nodes?.items ?? undefined;
  if (NodeNames != null && nodes !== undefined) throw new ArgsError('both Nodes and NodeNames are set: expected one');
  const names = NodeNames ?? nodes?.map(({ metadata }) => metadata.name);
  if (names === undefined)
    throw new ArgsError(
      'neither NodeNames nor Nodes is set: set nodeCacheCapable: true in the extender’s configuration',
    );
  if (!identified.safeParse(Pod).success)
    throw new ArgsError('Pod.metadata.uid is missing: the extender identifies pods by uid');
  const { data, error } = schedulingPod.safeParse(Pod);
  return { pod: data ?? new UnreadablePod(issuesText(error!)), names, nodes };
}

/** By node. */
const victimsOf = <S extends z.ZodType>(victim: S) => {
  const victims = { Pods: list(victim, MAX_LIST_ITEMS).nullish(), NumPDBViolations: z.number().int().nullish() };
  return map(name, z.object(victims), MAX_NODES).nullish();
};
export const extenderPreemptionArgs = z.object({
  Pod: pod.superRefine(limitAmounts),
  NodeNameToVictims: victimsOf(z.object({ metadata: z.object({ uid }) })),
  NodeNameToMetaVictims: victimsOf(z.object({ UID: uid })),
});
export type ExtenderPreemptionArgs = z.infer<typeof extenderPreemptionArgs>;

/** @throws ArgsError if the body does not match the schema; `expected` is the name of the type */
export function parseBody<S extends z.ZodType>(schema: S, body: unknown, expected: string): z.output<S> {
  if (body === undefined) throw new ArgsError(`the body is empty: expected ${expected}`);
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw new ArgsError(`the body is not ${expected}: ${issuesText(result.error)}`);
}

/** Until its volumes and dynamic resources are ready, and its group is complete. */
export function waitsToBind(pod: SchedulingPod): boolean {
  const { volumes, resourceClaims } = pod.spec;
  const hasClaim = volumes?.some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral) ?? false;
  return hasClaim || (resourceClaims?.length ?? 0) > 0 || isInGroup(pod);
}

/**
 * Of which kube-scheduler filters all pods before it binds or nominates one: schedulingGroup since 1.36, workloadRef in
 * 1.35. Source: podGroupCycle in pkg/scheduler/schedule_one_podgroup.go.
 */
export function isInGroup({ spec: { schedulingGroup, workloadRef } }: SchedulingPod): boolean {
  return (schedulingGroup ?? workloadRef) != null;
}

/** Each may add a node in each of its domains. */
const MAX_KEYS = 4;

/** Of node labels, in preferences that kube-scheduler weighs among the remaining nodes. */
export function softTopologyKeys({ spec }: SchedulingPod): readonly string[] {
  const { affinity: affinities, topologySpreadConstraints: spreads } = spec;
  if (affinities == null && spreads == null) return [];
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinities ?? {};
  const keys = new Set<string>();
  for (const { topologyKey, whenUnsatisfiable } of spreads ?? [])
    if (whenUnsatisfiable === 'ScheduleAnyway') keys.add(topologyKey);
  for (const terms of [podAffinity, podAntiAffinity])
    for (const { podAffinityTerm } of terms?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      keys.add(podAffinityTerm.topologyKey);
  for (const { preference } of nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
    for (const { key } of preference.matchExpressions ?? []) keys.add(key);
  return [...keys].slice(0, MAX_KEYS);
}

/** All in FailedAndUnresolvableNodes: preemption cannot help (ADR 0022). @param nodes if the scheduler sent objects */
export function filterResult({ answers, refusals }: FilterOutcome, nodes: readonly NodeObject[] | undefined) {
  const names = answers.map(({ node }) => node);
  const passed = new Set(names);
  const items = nodes?.filter(({ metadata }) => passed.has(metadata.name));
  return {
    Nodes: items === undefined ? null : { metadata: {}, items },
    NodeNames: names,
    FailedNodes: {},
    FailedAndUnresolvableNodes: refusals.byNode,
    Error: '',
  };
}

/** The scheduler treats this as a failure of the extender: it retries the pod with backoff, on no node. */
export function filterError(message: string) {
  return { Nodes: null, NodeNames: null, FailedNodes: null, FailedAndUnresolvableNodes: null, Error: message };
}
