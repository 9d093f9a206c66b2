import * as z from 'zod';
import { listOrNone, message, name, reason, uid, word } from '../kube/bounds.ts';
import { nodeCondition, type WatchedNode } from '../kube/cluster-view/nodes.ts';
import {
  affinity,
  connectionWrites,
  node as nodeSchema,
  observedMeta,
  orUndefined,
  pod as podSchema,
  toleration,
} from '../kube/resources.ts';
import { virtualMachineInstance } from '../kube/virtual-machines.ts';
import { isNetworkLost, type NetworkedPod, networkMadeAt } from '../model/lease/dpu-run.ts';
import { DPU_READY_CONDITION, DPU_RESTARTED_CONDITION } from '../model/names.ts';
import type { NodeStateFacts } from './facts.ts';

/** Schemas of the parts of objects that an explanation reads in addition to those of the daemons. */

export function listOf<Item extends z.ZodType>(item: Item) {
  return z
    .array(item)
    .nullish()
    .transform((list): readonly z.infer<Item>[] => list ?? []);
}

const text = orUndefined(z.string());
/** A word or a time. One that is too long is left out. */
const brief = word.nullish().catch(undefined);
const texts = orUndefined(z.record(z.string(), z.string()));
const meta = observedMeta.extend({ creationTimestamp: text });
export const explainedCondition = z.object({
  type: z.string(),
  status: z.string(),
  reason: text,
  message: text,
  lastTransitionTime: text,
});
const conditions = listOf(explainedCondition);
const waiting = z.object({ reason: z.string().nullish(), message: z.string().nullish() }).nullish();
const containerStatuses = listOf(z.object({ name: z.string(), state: z.object({ waiting }).nullish() }));

const labelSelector = z.object({
  matchLabels: texts,
  matchExpressions: listOf(z.object({ key: z.string(), operator: z.string(), values: listOf(z.string()) })),
});
const podAffinityTerm = z.object({
  labelSelector: orUndefined(labelSelector),
  namespaces: listOf(z.string()),
  topologyKey: z.string(),
  /** Terms with one of these are not judged. */
  namespaceSelector: z.unknown().optional(),
  matchLabelKeys: listOf(z.string()),
  mismatchLabelKeys: listOf(z.string()),
});
export type PodAffinityTerm = z.infer<typeof podAffinityTerm>;
const requiredPodTerms = orUndefined(
  z.object({ requiredDuringSchedulingIgnoredDuringExecution: listOf(podAffinityTerm) }),
);

export const explainedPod = podSchema.extend({
  metadata: meta.extend({ managedFields: connectionWrites }),
  spec: podSchema.shape.spec.extend({
    tolerations: listOf(toleration),
    schedulingGates: listOf(z.object({ name: z.string() })),
    affinity: orUndefined(affinity.extend({ podAffinity: requiredPodTerms, podAntiAffinity: requiredPodTerms })),
  }),
  status: orUndefined(
    z.object({
      phase: z.string().optional(),
      qosClass: z.string().optional(),
      reason: text,
      message: text,
      nominatedNodeName: text,
      conditions,
      containerStatuses,
      initContainerStatuses: containerStatuses,
    }),
  ),
});
export type ExplainedPod = z.infer<typeof explainedPod>;

const taint = z.object({ key: z.string(), value: z.string().nullish(), effect: z.string() });
export const explainedNode = nodeSchema.extend({
  spec: orUndefined(z.object({ unschedulable: z.boolean().nullish(), taints: orUndefined(z.array(taint)) })),
  status: orUndefined(z.object({ capacity: texts, allocatable: texts, conditions })),
});
export type ExplainedNode = z.infer<typeof explainedNode>;

/** Of a dead DPU whose condition has no message. */
export const DEAD_DPU = 'its lease has expired';

/** Why the DPU is dead, from the condition that the extender or another component writes; undefined unless it is. */
export function deadDpu(node: WatchedNode | undefined): string | undefined {
  const { status, message = DEAD_DPU } = nodeCondition(node, DPU_READY_CONDITION) ?? {};
  return status === 'False' ? message : undefined;
}

/** The last restart of a node's DPU while pods have lost their network by it: from the extender's condition. */
export function dpuRestart(node: WatchedNode | undefined): LossOfNetworks | undefined {
  const { status, lastTransitionTime: at, message } = nodeCondition(node, DPU_RESTARTED_CONDITION) ?? {};
  return status !== 'True' || at == null ? undefined : { at, text: message ?? `its DPU’s restart at ${at}` };
}

/** @param pod that runs on the node; for others, nothing is lost */
export function dpuFacts(node: WatchedNode | undefined, pod: NetworkedPod): DpuFacts {
  return { deadDpu: deadDpu(node), networkLost: lossOf(dpuRestart(node), networkMadeAt(pod)) };
}

/** @param madeAt when its network was made @returns since when it is lost, as text */
export function lossOf(restart: LossOfNetworks | undefined, madeAt: number | undefined): string | undefined {
  return restart && isNetworkLost(madeAt, restart) ? restart.text : undefined;
}

export type DpuFacts = Pick<NodeStateFacts, 'deadDpu' | 'networkLost'>;

/** `at`: RFC 3339. `text`: `its DPU’s reboot at …`. */
type LossOfNetworks = Readonly<Record<'at' | 'text', string>>;

/** Of a Deployment that is not ready. */
export const NO_READY_REPLICA = 'no replica is ready';

type CountedReplicas = { readonly readyReplicas?: number | null | undefined } | null | undefined;

export const hasReadyReplica = ({ status }: { readonly status?: CountedReplicas }): boolean =>
  (status?.readyReplicas ?? 0) > 0;

export const explainedVm = z.object({
  metadata: meta,
  spec: z.object({
    running: z.boolean().nullish(),
    runStrategy: z.string().nullish(),
    /** The API server does not check its metadata: what is not needed is not read, and cannot hide the VM. */
    template: z.object({ metadata: z.object({ annotations: texts.optional() }).nullish() }).nullish(),
  }),
  status: orUndefined(
    z.object({
      printableStatus: z.string().nullish(),
      /** KubeVirt's count of VMIs that ended before they ran. */
      startFailure: z
        .object({ consecutiveFailCount: z.number().nullish(), retryAfterTimestamp: z.string().nullish() })
        .nullish(),
      conditions,
    }),
  ),
});
export type ExplainedVm = z.infer<typeof explainedVm>;

/** KubeVirt's record of an instance's last migration. */
export const migrationState = z
  .object({
    migrationUid: brief,
    startTimestamp: brief,
    endTimestamp: brief,
    completed: z.boolean().nullish(),
    failed: z.boolean().nullish(),
    failureReason: reason.nullish(),
    abortRequested: z.boolean().nullish(),
    abortStatus: brief,
    mode: brief,
  })
  .nullish();

const MAX_CONDITIONS = 64;
const migrationConditions = listOrNone(
  z.object({
    type: word,
    status: word,
    reason: orUndefined(reason),
    message: orUndefined(message),
    lastTransitionTime: orUndefined(word),
  }),
  MAX_CONDITIONS,
).transform((list) => list ?? []);

/** The console keeps all of a cluster, so its texts are bounded. */
export const explainedMigration = z.object({
  metadata: z.object({
    name: name.optional(),
    namespace: name.optional(),
    uid: uid.optional(),
    creationTimestamp: orUndefined(word),
    deletionTimestamp: orUndefined(word),
  }),
  spec: z.object({ vmiName: name.nullish() }),
  status: orUndefined(z.object({ phase: brief, conditions: migrationConditions, migrationState })),
});
export type ExplainedMigration = z.infer<typeof explainedMigration>;

export const explainedVmi = virtualMachineInstance.extend({
  metadata: meta,
  spec: virtualMachineInstance.shape.spec.extend({ evictionStrategy: brief }),
  status: orUndefined(
    z.object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      nodeName: z.string().nullish(),
      /** Node of each launcher, by the launcher's uid; two entries during a migration. */
      activePods: z.record(z.string(), z.string()).nullish(),
      evacuationNodeName: z.string().nullish(),
      migrationState,
      conditions,
    }),
  ),
});
export type ExplainedVmi = z.infer<typeof explainedVmi>;

const optional = z.string().nullish();
export const occurrence = z.object({
  involvedObject: z.object({ kind: optional, namespace: optional, name: optional, uid: optional }),
  /** `host`: for an Event of a kubelet, its node. */
  source: z.object({ component: optional, host: optional }).nullish(),
  reportingComponent: optional,
  type: optional,
  reason: optional,
  message: optional,
  count: z.number().nullish(),
  lastTimestamp: optional,
  eventTime: optional,
  metadata: meta,
});
export type Occurrence = z.infer<typeof occurrence>;

/** A time of the API server in milliseconds since 1970; 0 if there is none. */
export const millisecondsOf = (time: string | null | undefined): number => Date.parse(time ?? '') || 0;

/** When an Event last happened, in milliseconds since 1970. */
export const timeOf = ({ lastTimestamp, eventTime, metadata }: Occurrence): number =>
  millisecondsOf(lastTimestamp ?? eventTime ?? metadata.creationTimestamp);
