import * as z from 'zod';
import { list, map, name, qualifiedName, uid, word } from './bounds.ts';
import {
  affinity,
  condition,
  nodeSelector,
  objectMeta,
  orUndefined,
  part,
  resources,
  tolerations,
} from './resources.ts';

const MAX_NETWORKS = 256;
const count = z.number().int().nonnegative().optional();

/** The fields of a KubeVirt VMI that decide how many CPUs its launcher needs and which networks it has. */
export const virtualMachineInstance = z.object({
  metadata: objectMeta,
  spec: z.object({
    nodeSelector,
    affinity: orUndefined(affinity),
    domain: z.object({
      cpu: part({
        cores: count,
        sockets: count,
        threads: count,
        dedicatedCpuPlacement: z.boolean().optional(),
        isolateEmulatorThread: z.boolean().optional(),
        /** The claim and request that give it its CPUs (KubeVirt's gate CPUsWithDRA). */
        dra: part({}),
        numa: part({ guestMappingPassthrough: part({}) }),
      }),
      ioThreadsPolicy: word.optional(),
      ioThreads: part({ supplementalPoolThreadCount: count }),
      resources,
    }),
    networks: orUndefined(
      list(
        z.object({
          name,
          pod: z.object({}).nullish(),
          multus: part({ networkName: qualifiedName, default: z.boolean().optional() }),
        }),
        MAX_NETWORKS,
      ),
    ),
  }),
});

export type VirtualMachineInstance = z.infer<typeof virtualMachineInstance>;

/** Schemas of VMIs when they are created, and of the templates of the kinds that create them. */

/** The resources of devices that the launcher requests. */
const deviceNames = list(z.object({ deviceName: qualifiedName.optional() }), 256).nullish();

/** A VMI's spec with the fields that decide how the VMI starts. */
export const startingSpec = virtualMachineInstance.shape.spec.extend({
  domain: virtualMachineInstance.shape.spec.shape.domain.extend({
    devices: z.object({ gpus: deviceNames, hostDevices: deviceNames }).nullish().catch(undefined),
    memory: z
      .object({ guest: word.optional(), hugepages: z.object({ pageSize: word.optional() }).nullish() })
      .nullish()
      .catch(undefined),
  }),
  startStrategy: word.nullish(),
  schedulerName: name.nullish(),
  livenessProbe: z.object({}).nullish(),
  tolerations,
});
export const startingInstance = z.object({ metadata: objectMeta, spec: startingSpec });

const instancetype = z.object({ name: name.optional() }).nullish();
const template = z.object({ metadata: orUndefined(objectMeta), spec: startingSpec });

export const virtualMachine = z.object({
  metadata: objectMeta,
  spec: z.object({ template, instancetype }),
  /** `created`: its VMI exists. */
  status: z.object({ created: z.boolean().nullish() }).nullish(),
});

export const virtualMachineInstanceReplicaSet = z.object({ metadata: objectMeta, spec: z.object({ template }) });

export const virtualMachinePool = z.object({
  metadata: objectMeta,
  spec: z.object({ virtualMachineTemplate: z.object({ spec: z.object({ template, instancetype }) }) }),
});

const instanceCondition = condition.omit({ message: true }).extend({ reason: condition.shape.reason.nullish() });
export const instanceConditions = list(instanceCondition, 256).nullish();

/** A VMI with the progress of its start. */
export const startedInstance = z.object({
  metadata: objectMeta,
  spec: startingSpec,
  status: z
    .object({
      phase: word.optional(),
      nodeName: name.optional(),
      /** Node of each launcher, by the launcher's uid; two entries during a migration. */
      activePods: map(uid, name, 64).nullish(),
      conditions: instanceConditions,
    })
    .nullish()
    // A VMI has its mask also with a status that is too long.
    .catch(undefined),
});
