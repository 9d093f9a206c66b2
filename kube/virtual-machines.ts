import * as z from 'zod';
import { objectMeta, virtualMachineInstance } from './resources.ts';

/** The kinds that make VMIs, as far as their templates go. */

const instancetype = z.object({ name: z.string().optional() }).nullish();
const template = z.object({
  metadata: objectMeta.nullish().transform((meta) => meta ?? undefined),
  spec: virtualMachineInstance.shape.spec,
});

export const virtualMachine = z.object({
  metadata: objectMeta,
  spec: z.object({ template, instancetype }),
});

export const virtualMachineInstanceReplicaSet = z.object({
  metadata: objectMeta,
  spec: z.object({ template }),
});

export const virtualMachinePool = z.object({
  metadata: objectMeta,
  spec: z.object({ virtualMachineTemplate: z.object({ spec: z.object({ template, instancetype }) }) }),
});
