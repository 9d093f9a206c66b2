import * as z from 'zod';
import { DPU_DETAILS_ANNOTATION, DPU_STATUS_ANNOTATION, isConnectionWrite } from '../model/cni/connection-status.ts';
import { EVEN_PARITY_ANNOTATION } from '../model/launcher/cpus.ts';
import { PROVISIONING_ANNOTATION } from '../model/launcher/recognize.ts';
import {
  ALIGN_ANNOTATION,
  CPU_MASK_ANNOTATION,
  CPU_MASK_START_ANNOTATION,
  DECISION_ANNOTATION,
  DPU_RUN_ANNOTATION,
  FIX_CPU_MISMATCH_ANNOTATION,
  FULL_PCPUS_ANNOTATION,
  NAD_PHYSNET_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
  PAUSED_START_ANNOTATION,
  PLACEMENT_ANNOTATION,
} from '../model/names.ts';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../model/networks/attachments.ts';
import { RESOURCE_NAME_ANNOTATION } from '../model/networks/nad.ts';
import {
  list,
  listOrNone,
  MAX_ANNOTATION_CHARACTERS,
  MAX_NAME_CHARACTERS,
  MAX_QUALIFIED_CHARACTERS,
  MAX_WORD_CHARACTERS,
  map,
  message,
  name,
  presence,
  qualifiedName,
  reason,
  text,
  uid,
  word,
} from './bounds.ts';

/** The parts of objects that Plumbline reads. Unknown fields are dropped: never write a parsed object back. */

/** Go clients write `null` for absent fields; the rest of the code only has undefined. */
export function nullToUndefined<T>(value: T | null | undefined): T | undefined {
  return value ?? undefined;
}

/** A field that may be absent or null. */
export function orUndefined<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform(nullToUndefined);
}

/** An object with these fields that may be absent or null. */
export const part = <Shape extends z.ZodRawShape>(shape: Shape) => orUndefined(z.object(shape));

const MAX_CONTAINERS = 512;
const MAX_CONDITIONS = 256;
const MAX_TOLERATIONS = 512;
const MAX_OWNERS = 64;
/** Resources of a container or node; labels; terms of an affinity, and requirements and values in all of them. */
const MAX_RESOURCES = 512;
const MAX_LABELS = 1024;
const MAX_SELECTORS = 512;
const MAX_TERMS = 64;
const MAX_REQUIREMENTS = 256;
const MAX_VALUES = 4096;
const MAX_CONFIG_CHARACTERS = 256 * 1024;

/** More labels than these are cut, but none of those that decide what a pod is. */
const DECIDING_LABELS = ['kubevirt.io', 'kubevirt.io/migrationJobUID'];
const labels = orUndefined(
  // Cut before its entries are checked, which takes longer.
  z.custom<Readonly<Record<string, string>>>().transform(cutLabels).pipe(z.record(z.string(), z.string())),
).optional();
export const nodeSelector = orUndefined(map(qualifiedName, word, MAX_SELECTORS)).optional();
/** JSON allows a bare number where Kubernetes documents a quantity; the API server converts it to a string. */
const quantity = z.union([word, z.number()], 'expected a quantity, such as "2"').transform(String);
const resourceList = orUndefined(map(qualifiedName, quantity, MAX_RESOURCES)).optional();
export const resources = part({ requests: resourceList, limits: resourceList });

const annotation = text(MAX_ANNOTATION_CHARACTERS).optional();
/** What describes a DPU never makes an object unreadable. */
const connection = text(4 * MAX_ANNOTATION_CHARACTERS)
  .optional()
  .catch(undefined);

/** The annotations that Plumbline reads. Others are dropped. */
const annotationFields = {
  [ALIGN_ANNOTATION]: annotation,
  [CPU_MASK_ANNOTATION]: annotation,
  [CPU_MASK_START_ANNOTATION]: annotation,
  [DECISION_ANNOTATION]: annotation,
  [DEFAULT_NETWORK_ANNOTATION]: annotation,
  [DPU_DETAILS_ANNOTATION]: connection,
  [DPU_RUN_ANNOTATION]: connection,
  [DPU_STATUS_ANNOTATION]: connection,
  [EVEN_PARITY_ANNOTATION]: presence.optional(),
  [FIX_CPU_MISMATCH_ANNOTATION]: annotation,
  [FULL_PCPUS_ANNOTATION]: annotation,
  [NAD_PHYSNET_ANNOTATION]: annotation,
  [NETWORKS_ANNOTATION]: annotation,
  [NUMA_AFFINITY_ANNOTATION]: annotation,
  [PAUSED_START_ANNOTATION]: annotation,
  [PLACEMENT_ANNOTATION]: annotation,
  [PROVISIONING_ANNOTATION]: annotation,
  [RESOURCE_NAME_ANNOTATION]: annotation,
  // On the mirror of a static pod (pkg/kubelet/types/pod_update.go).
  'kubernetes.io/config.hash': annotation,
  'kubernetes.io/config.mirror': presence.optional(),
};

const MAX_MANAGERS = 256;
/** Who wrote which fields; empty if that cannot be read. */
export const managedFields = list(
  z.object({ manager: word.optional(), time: word.optional(), fieldsV1: z.unknown() }),
  MAX_MANAGERS,
)
  .default([])
  .catch([]);
/** Of a pod: only who wrote how its DPU connects it. */
export const connectionWrites = managedFields.transform((entries) => entries.filter(isConnectionWrite));

const annotationsOf = (fields: z.core.$ZodLooseShape) =>
  orUndefined(z.object(fields).transform((read) => read as Readonly<Record<string, string>>)).optional();

export const objectMeta = z.object({
  name: name.optional(),
  generateName: name.optional(),
  namespace: name.optional(),
  uid: uid.optional(),
  resourceVersion: word.optional(),
  deletionTimestamp: word.optional(),
  labels,
  annotations: annotationsOf(annotationFields),
  ownerReferences: orUndefined(
    list(
      z.object({
        apiVersion: qualifiedName,
        kind: word,
        name,
        uid,
        controller: z.boolean().optional(),
        blockOwnerDeletion: z.boolean().optional(),
      }),
      MAX_OWNERS,
    ),
  ),
});

/** Of an object that exists already, whatever its author has added since: what is too long is absent. */
export const observedMeta = objectMeta.extend({
  annotations: annotationsOf(
    Object.fromEntries(Object.entries(annotationFields).map(([key, schema]) => [key, schema.catch(undefined)])),
  ),
  ownerReferences: objectMeta.shape.ownerReferences.catch(undefined),
});

function cutLabels(all: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (typeof all !== 'object' || all === null || Array.isArray(all)) return all;
  const isShort = (text: unknown, maxCharacters: number) => typeof text !== 'string' || text.length <= maxCharacters;
  const entries = Object.entries(all).filter(([key, value]) => {
    return isShort(key, MAX_QUALIFIED_CHARACTERS) && isShort(value, MAX_WORD_CHARACTERS);
  });
  const isDeciding = ([key]: readonly [string, string]) => DECIDING_LABELS.includes(key);
  const read = entries.length <= MAX_LABELS ? entries : [...entries.filter(isDeciding), ...entries];
  return Object.fromEntries(read.slice(0, MAX_LABELS));
}

const container = z.object({ name: word, restartPolicy: word.optional(), resources });

const nodeRequirement = z.object({ key: qualifiedName, operator: word, values: orUndefined(list(name, MAX_VALUES)) });
const requirements = orUndefined(list(nodeRequirement, MAX_REQUIREMENTS));

type Requirements = z.output<typeof requirements>;

export const affinity = z.object({
  nodeAffinity: orUndefined(
    z
      .object({
        // Terms with an unknown shape are ignored.
        preferredDuringSchedulingIgnoredDuringExecution: listOrNone(
          z.object({ preference: z.object({ matchExpressions: requirements }) }),
          MAX_TERMS,
        ).transform(nullToUndefined),
        requiredDuringSchedulingIgnoredDuringExecution: part({
          nodeSelectorTerms: orUndefined(
            list(z.object({ matchExpressions: requirements, matchFields: requirements }), MAX_TERMS),
          ),
        }),
      })
      .superRefine((affinities, context) => {
        const terms: readonly { matchExpressions: Requirements; matchFields?: Requirements }[] = [
          ...(affinities.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []),
          ...(affinities.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ preference }) => preference),
        ];
        const all = terms.flatMap((term) => [...(term.matchExpressions ?? []), ...(term.matchFields ?? [])]);
        const values = all.flatMap((requirement) => requirement.values ?? []);
        if (all.length > MAX_REQUIREMENTS) context.addIssue(`more than ${MAX_REQUIREMENTS} requirements`);
        if (values.length > MAX_VALUES) context.addIssue(`more than ${MAX_VALUES} values`);
      }),
  ),
});

export const toleration = z.object({
  key: qualifiedName.nullish(),
  operator: word.nullish(),
  value: word.nullish(),
  effect: word.nullish(),
});

/** Tolerations of a pod. Those with an unknown shape are ignored. */
export const tolerations = listOrNone(toleration, MAX_TOLERATIONS);

export const condition = z.object({
  type: qualifiedName,
  status: word,
  reason: reason.optional(),
  message: message.optional(),
  lastTransitionTime: word.nullish(),
});
const conditions = orUndefined(list(condition, MAX_CONDITIONS));

export const podStatus = z.object({
  phase: word.optional(),
  qosClass: word.optional(),
  reason: reason.optional(),
  message: message.optional(),
  nominatedNodeName: name.optional(),
  conditions,
});

export const pod = z.object({
  metadata: objectMeta,
  spec: z.object({
    nodeName: name.optional(),
    schedulerName: name.optional(),
    hostNetwork: z.boolean().optional(),
    containers: list(container, MAX_CONTAINERS).refine((all) => all.length > 0, 'a pod needs at least one container'),
    initContainers: orUndefined(list(container, MAX_CONTAINERS)),
    resources,
    nodeSelector,
    affinity: orUndefined(affinity),
  }),
  status: orUndefined(podStatus),
});

export const node = z.object({
  metadata: objectMeta,
  spec: part({ unschedulable: z.boolean().optional() }),
  status: part({
    capacity: resourceList,
    allocatable: resourceList,
    conditions,
    nodeInfo: z.object({ architecture: word.optional() }).optional(),
  }),
});

export const lease = z.object({
  metadata: objectMeta,
  spec: part({
    // The name of a host, and a UUID.
    holderIdentity: orUndefined(text(2 * MAX_NAME_CHARACTERS)),
    leaseDurationSeconds: orUndefined(z.number().int()),
    acquireTime: orUndefined(word),
    renewTime: orUndefined(word),
    leaseTransitions: orUndefined(z.number().int()),
  }),
});

export const networkAttachmentDefinition = z.object({
  metadata: objectMeta,
  spec: part({ config: orUndefined(text(MAX_CONFIG_CHARACTERS)) }),
});

export type ObjectMeta = z.infer<typeof objectMeta>;
export type Pod = z.infer<typeof pod>;
export type Node = z.infer<typeof node>;
export type Lease = z.infer<typeof lease>;
export type NetworkAttachmentDefinition = z.infer<typeof networkAttachmentDefinition>;

/** The key of an object in its collection: `namespace/name`, or the name where it has no namespace. */
export const objectKey = ({ name: own = '', namespace }: Pick<ObjectMeta, 'name' | 'namespace'>): string =>
  namespace === undefined ? own : `${namespace}/${own}`;
