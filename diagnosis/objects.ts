import * as z from 'zod';
import { listOrNone, message, name, reason, uid, word } from '../kube/bounds.ts';
import { nodeCondition, type WatchedNode } from '../kube/cluster-view/nodes.ts';
import {
  affinity,
  connectionWrites,
  node as nodeSchema,
  nullToUndefined,
  objectMeta,
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

const text = z.string().nullish().transform(nullToUndefined);
/** A word or a time. One that is too long is left out. */
const brief = word.nullish().catch(undefined);
const texts = z.record(z.string(), z.string()).nullish().transform(nullToUndefined);
const meta = objectMeta.extend({ creationTimestamp: text });
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
  labelSelector: labelSelector.nullish().transform(nullToUndefined),
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
  status: z
    .object({
      phase: z.string().optional(),
      qosClass: z.string().optional(),
      reason: text,
      message: text,
      nominatedNodeName: text,
      conditions,
      containerStatuses,
      initContainerStatuses: containerStatuses,
    })
    .nullish()
    .transform(nullToUndefined),
});
export type ExplainedPod = z.infer<typeof explainedPod>;

export const explainedNode = nodeSchema.extend({
  spec: z
    .object({
      unschedulable: z.boolean().nullish(),
      taints: z
        .array(z.object({ key: z.string(), value: z.string().nullish(), effect: z.string() }))
        .nullish()
        .transform(nullToUndefined),
    })
    .nullish()
    .transform(nullToUndefined),
  status: z
    .object({
      capacity: texts,
      allocatable: texts,
      conditions,
    })
    .nullish()
    .transform(nullToUndefined),
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

interface LossOfNetworks {
  /** RFC 3339. */
  readonly at: string;
  /** `its DPU’s reboot at …` */
  readonly text: string;
}

/** Of a Deployment that is not ready. */
export const NO_READY_REPLICA = 'no replica is ready';

interface CountedReplicas {
  readonly status?: { readonly readyReplicas?: number | null | undefined } | null | undefined;
}

export const hasReadyReplica = ({ status }: CountedReplicas): boolean => (status?.readyReplicas ?? 0) > 0;

export const explainedVm = z.object({
  metadata: meta,
  spec: z.object({
    running: z.boolean().nullish(),
    runStrategy: z.string().nullish(),
    template: z.object({ metadata: z.object({ annotations: texts }).nullish() }).nullish(),
  }),
  status: z
    .object({
      printableStatus: z.string().nullish(),
      /** KubeVirt's count of VMIs that ended before they ran. */
      startFailure: z
        .object({ consecutiveFailCount: z.number().nullish(), retryAfterTimestamp: z.string().nullish() })
        .nullish(),
      conditions,
    })
    .nullish()
    .transform(nullToUndefined),
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
  status: z
    .object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      nodeName: z.string().nullish(),
      /** Node of each launcher, by the launcher's uid; two entries during a migration. */
      activePods: z.record(z.string(), z.string()).nullish(),
      evacuationNodeName: z.string().nullish(),
      migrationState,
      conditions,
    })
    .nullish()
    .transform(nullToUndefined),
});
export type ExplainedVmi = z.infer<typeof explainedVmi>;

export const occurrence = z.object({
  involvedObject: z.object({
    kind: z.string().nullish(),
    namespace: z.string().nullish(),
    name: z.string().nullish(),
    uid: z.string().nullish(),
  }),
  /** `host`: for an Event of a kubelet, its node. */
  source: z.object({ component: z.string().nullish(), host: z.string().nullish() }).nullish(),
  reportingComponent: z.string().nullish(),
  type: z.string().nullish(),
  reason: z.string().nullish(),
  message: z.string().nullish(),
  count: z.number().nullish(),
  lastTimestamp: z.string().nullish(),
  eventTime: z.string().nullish(),
  metadata: meta,
});
export type Occurrence = z.infer<typeof occurrence>;

/** When an Event last happened, in milliseconds since 1970. */
export function timeOf({ lastTimestamp, eventTime, metadata }: Occurrence): number {
  const time = Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '');
  return Number.isNaN(time) ? 0 : time;
}
