import * as z from 'zod';
import { objectMeta, tolerations, virtualMachineInstance } from './resources.ts';

/** VMIs as they are made, and the kinds that make them, as far as their templates go. */

/** A VMI's spec with what decides how it starts, which is read where VMIs are made and nowhere else. */
export const startingSpec = virtualMachineInstance.shape.spec.extend({
  startStrategy: z.string().nullish(),
  schedulerName: z.string().nullish(),
  livenessProbe: z.object({}).nullish(),
  tolerations,
});
export const startingInstance = z.object({ metadata: objectMeta, spec: startingSpec });

const instancetype = z.object({ name: z.string().optional() }).nullish();
const template = z.object({
  metadata: objectMeta.nullish().transform((meta) => meta ?? undefined),
  spec: startingSpec,
});

export const virtualMachine = z.object({
  metadata: objectMeta,
  spec: z.object({ template, instancetype }),
  /** `created`: there is a VMI of it. */
  status: z.object({ created: z.boolean().nullish() }).nullish(),
});

export const virtualMachineInstanceReplicaSet = z.object({
  metadata: objectMeta,
  spec: z.object({ template }),
});

export const virtualMachinePool = z.object({
  metadata: objectMeta,
  spec: z.object({ virtualMachineTemplate: z.object({ spec: z.object({ template, instancetype }) }) }),
});

/** A condition of a VMI, without its message, whose length KubeVirt does not bound. */
export const instanceCondition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().nullish(),
  lastTransitionTime: z.string().nullish(),
});

/** A VMI with how far its start is. */
export const startedInstance = z.object({
  metadata: objectMeta,
  spec: startingSpec,
  status: z
    .object({
      phase: z.string().optional(),
      nodeName: z.string().optional(),
      /** Node by uid of the launcher; two while it migrates. */
      activePods: z.record(z.string(), z.string()).nullish(),
      conditions: z.array(instanceCondition).nullish(),
    })
    .nullish(),
});
