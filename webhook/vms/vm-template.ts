import type * as z from 'zod';
import type { ObjectMeta } from '../../kube/resources.ts';
import {
  startingInstance,
  type startingSpec,
  virtualMachine,
  virtualMachineInstanceReplicaSet,
  virtualMachinePool,
} from '../../kube/virtual-machines.ts';
import { issuesText } from '../../model/errors.ts';
import type { VmTemplate } from '../../model/launcher/template.ts';

export interface ReadTemplate extends VmTemplate {
  readonly outer: ObjectMeta;
  readonly metadata: ObjectMeta;
  readonly spec: z.infer<typeof startingSpec>;
  /** Whether a VMI exists that was created from an earlier state of the template. */
  readonly running: boolean;
  /** Path of the template, for messages; undefined for a VMI. */
  readonly path: string | undefined;
}

const NO_METADATA: ObjectMeta = { labels: undefined, annotations: undefined, ownerReferences: undefined };

/**
 * The template in an object of one of KubeVirt's kinds. A string says why it cannot be parsed; undefined: another kind.
 */
export function readTemplate(kind: string, object: unknown): ReadTemplate | string | undefined {
  switch (kind) {
    case 'VirtualMachineInstance':
      return read(startingInstance, object, (vmi) => made(vmi.metadata, vmi, undefined));
    case 'VirtualMachine':
      return read(virtualMachine, object, ({ metadata, spec: { template, instancetype }, status }) => ({
        ...made(metadata, template, 'spec.template', instancetype),
        running: status?.created === true,
      }));
    case 'VirtualMachineInstanceReplicaSet':
      return read(virtualMachineInstanceReplicaSet, object, ({ metadata, spec: { template } }) =>
        made(metadata, template, 'spec.template'),
      );
    case 'VirtualMachinePool':
      return read(virtualMachinePool, object, ({ metadata, spec: { virtualMachineTemplate } }) => {
        const { template, instancetype } = virtualMachineTemplate.spec;
        return made(metadata, template, 'spec.virtualMachineTemplate.spec.template', instancetype);
      });
    default:
      return undefined;
  }
}

type Template = Pick<ReadTemplate, 'spec'> & { readonly metadata?: ObjectMeta | undefined };

function made(outer: ObjectMeta, template: Template, path: string | undefined, instancetype?: unknown): ReadTemplate {
  const { metadata = NO_METADATA, spec } = template;
  return { outer, metadata, spec, instancetype: instancetype != null, running: false, path };
}

function read<S extends z.ZodType>(schema: S, object: unknown, template: (parsed: z.output<S>) => ReadTemplate) {
  const result = schema.safeParse(object);
  return result.success ? template(result.data) : issuesText(result.error);
}
