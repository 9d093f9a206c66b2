import * as z from 'zod';
import { objectMeta, tolerations, virtualMachineInstance } from './resources.ts';

/** Schemas of VMIs when they are created, and of the templates of the kinds that create them. */

/** A VMI's spec with the fields that decide how the VMI starts. */
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
  /** `created`: its VMI exists. */
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

/** A VMI with the progress of its start. */
export const startedInstance = z.object({
  metadata: objectMeta,
  spec: startingSpec,
  status: z
    .object({
      phase: z.string().optional(),
      nodeName: z.string().optional(),
      /** Node of each launcher, by the launcher's uid; two entries during a migration. */
      activePods: z.record(z.string(), z.string()).nullish(),
      conditions: z.array(instanceCondition).nullish(),
    })
    .nullish(),
});
