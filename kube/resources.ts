import * as z from 'zod';

/**
 * Schemas of the parts of Kubernetes objects that Plumbline reads, applied where objects enter the process. Unknown
 * fields are ignored: never write a parsed object back.
 */

/** Go clients write `null` for absent fields; the rest of the code only has undefined. */
export function nullToUndefined<T>(value: T | null | undefined): T | undefined {
  return value ?? undefined;
}

/** Labels, annotations, selectors. */
const textMap = z.record(z.string(), z.string()).nullish().transform(nullToUndefined).optional();
/** JSON allows a bare number where Kubernetes documents a quantity; the API server converts it to a string. */
const quantity = z.union([z.string(), z.number()], 'expected a quantity, such as "2"').transform(String);
const resourceList = z.record(z.string(), quantity).nullish().transform(nullToUndefined).optional();

export const objectMeta = z.object({
  name: z.string().optional(),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  deletionTimestamp: z.string().optional(),
  labels: textMap,
  annotations: textMap,
  ownerReferences: z
    .array(
      z.object({
        apiVersion: z.string(),
        kind: z.string(),
        name: z.string(),
        uid: z.string(),
        controller: z.boolean().optional(),
        blockOwnerDeletion: z.boolean().optional(),
      }),
    )
    .nullish()
    .transform(nullToUndefined),
});

export const container = z.object({
  name: z.string(),
  restartPolicy: z.string().optional(),
  resources: z
    .object({
      requests: resourceList,
      limits: resourceList,
    })
    .nullish()
    .transform(nullToUndefined),
});

const nodeRequirement = z.object({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).nullish().transform(nullToUndefined),
});

/** Preferred node affinity. Terms with an unknown shape are ignored. */
const preferredNodes = z
  .array(z.object({ preference: z.object({ matchExpressions: z.array(nodeRequirement).nullish() }) }))
  .nullish()
  .transform(nullToUndefined)
  .catch(undefined);

/** Node affinity of a pod. */
export const affinity = z.object({
  nodeAffinity: z
    .object({
      preferredDuringSchedulingIgnoredDuringExecution: preferredNodes,
      requiredDuringSchedulingIgnoredDuringExecution: z
        .object({
          nodeSelectorTerms: z
            .array(
              z.object({
                matchExpressions: z.array(nodeRequirement).nullish().transform(nullToUndefined),
                matchFields: z.array(nodeRequirement).nullish().transform(nullToUndefined),
              }),
            )
            .nullish()
            .transform(nullToUndefined),
        })
        .nullish()
        .transform(nullToUndefined),
    })
    .nullish()
    .transform(nullToUndefined),
});

export const toleration = z.object({
  key: z.string().nullish(),
  operator: z.string().nullish(),
  value: z.string().nullish(),
  effect: z.string().nullish(),
});

/** Tolerations of a pod. Those with an unknown shape are ignored. */
export const tolerations = z.array(toleration).nullish().catch(undefined);

export const pod = z.object({
  metadata: objectMeta,
  spec: z.object({
    nodeName: z.string().optional(),
    schedulerName: z.string().optional(),
    hostNetwork: z.boolean().optional(),
    containers: z.array(container).min(1, 'a pod needs at least one container'),
    initContainers: z.array(container).nullish().transform(nullToUndefined),
    resources: z
      .object({
        requests: resourceList,
        limits: resourceList,
      })
      .nullish()
      .transform(nullToUndefined),
    nodeSelector: textMap,
    affinity: affinity.nullish().transform(nullToUndefined),
  }),
  status: z
    .object({
      phase: z.string().optional(),
      qosClass: z.string().optional(),
      reason: z.string().optional(),
      message: z.string().optional(),
      nominatedNodeName: z.string().optional(),
      conditions: z
        .array(z.object({ type: z.string(), status: z.string(), reason: z.string().optional() }))
        .nullish()
        .transform(nullToUndefined),
    })
    .nullish()
    .transform(nullToUndefined),
});

export const node = z.object({
  metadata: objectMeta,
  spec: z.object({ unschedulable: z.boolean().optional() }).nullish().transform(nullToUndefined),
  status: z
    .object({
      capacity: resourceList,
      allocatable: resourceList,
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            message: z.string().optional(),
            lastTransitionTime: z.string().nullish(),
          }),
        )
        .nullish()
        .transform(nullToUndefined),
    })
    .nullish()
    .transform(nullToUndefined),
});

export const lease = z.object({
  metadata: objectMeta,
  spec: z
    .object({
      holderIdentity: z.string().nullish().transform(nullToUndefined),
      leaseDurationSeconds: z.number().int().nullish().transform(nullToUndefined),
      acquireTime: z.string().nullish().transform(nullToUndefined),
      renewTime: z.string().nullish().transform(nullToUndefined),
      leaseTransitions: z.number().int().nullish().transform(nullToUndefined),
    })
    .nullish()
    .transform(nullToUndefined),
});

/**
 * A KubeVirt VirtualMachineInstance: the fields that decide how many CPUs its launcher needs and which networks it has.
 */
export const virtualMachineInstance = z.object({
  metadata: objectMeta,
  spec: z.object({
    nodeSelector: textMap,
    affinity: affinity.nullish().transform(nullToUndefined),
    domain: z.object({
      cpu: z
        .object({
          cores: z.number().int().nonnegative().optional(),
          sockets: z.number().int().nonnegative().optional(),
          threads: z.number().int().nonnegative().optional(),
          dedicatedCpuPlacement: z.boolean().optional(),
          isolateEmulatorThread: z.boolean().optional(),
          numa: z
            .object({ guestMappingPassthrough: z.object({}).nullish().transform(nullToUndefined) })
            .nullish()
            .transform(nullToUndefined),
        })
        .nullish()
        .transform(nullToUndefined),
      ioThreadsPolicy: z.string().optional(),
      ioThreads: z
        .object({ supplementalPoolThreadCount: z.number().int().nonnegative().optional() })
        .nullish()
        .transform(nullToUndefined),
      resources: z
        .object({
          requests: resourceList,
          limits: resourceList,
        })
        .nullish()
        .transform(nullToUndefined),
    }),
    networks: z
      .array(
        z.object({
          name: z.string(),
          pod: z.unknown().optional(),
          multus: z
            .object({ networkName: z.string(), default: z.boolean().optional() })
            .nullish()
            .transform(nullToUndefined),
        }),
      )
      .nullish()
      .transform(nullToUndefined),
  }),
});

export const networkAttachmentDefinition = z.object({
  metadata: objectMeta,
  spec: z.object({ config: z.string().optional() }).nullish().transform(nullToUndefined),
});

export type ObjectMeta = z.infer<typeof objectMeta>;
export type Pod = z.infer<typeof pod>;
export type Node = z.infer<typeof node>;
export type Lease = z.infer<typeof lease>;
export type VirtualMachineInstance = z.infer<typeof virtualMachineInstance>;
export type NetworkAttachmentDefinition = z.infer<typeof networkAttachmentDefinition>;
