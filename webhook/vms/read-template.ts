import type * as z from 'zod';
import type { ObjectMeta } from '../../kube/resources.ts';
import {
  startingInstance,
  type startingSpec,
  virtualMachine,
  virtualMachineInstanceReplicaSet,
  virtualMachinePool,
} from '../../kube/virtual-machines.ts';
import { issuesText } from '../../model/admission/answer.ts';

/** What a kind makes VMIs of. */
export interface ReadTemplate {
  /** The object's own metadata. */
  readonly outer: ObjectMeta;
  /** The metadata that VMIs get; that of a VMI itself. */
  readonly metadata: ObjectMeta;
  readonly spec: z.infer<typeof startingSpec>;
  /** An instancetype brings the CPUs, so they are known only at the VMI. */
  readonly instancetype: boolean;
  /** There is a VMI of it, which was made of what the template was then. */
  readonly running: boolean;
  /** Where the template is, for messages; undefined for a VMI. */
  readonly path: string | undefined;
}

const NO_METADATA: ObjectMeta = { labels: undefined, annotations: undefined, ownerReferences: undefined };

/** The template in an object of one of KubeVirt's kinds; text: why it cannot be read; undefined: another kind. */
export function readTemplate(kind: string, object: unknown): ReadTemplate | string | undefined {
  switch (kind) {
    case 'VirtualMachineInstance':
      return read(startingInstance, object, (vmi) => ({
        ...made(vmi.metadata, vmi, undefined),
        running: true,
      }));
    case 'VirtualMachine':
      return read(virtualMachine, object, ({ metadata, spec: { template, instancetype }, status }) => ({
        ...made(metadata, template, 'spec.template', instancetype),
        running: status?.created === true,
      }));
    case 'VirtualMachineInstanceReplicaSet':
      return read(virtualMachineInstanceReplicaSet, object, ({ metadata, spec }) =>
        made(metadata, spec.template, 'spec.template'),
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

function made(
  outer: ObjectMeta,
  { metadata = NO_METADATA, spec }: { readonly metadata?: ObjectMeta | undefined; readonly spec: ReadTemplate['spec'] },
  path: string | undefined,
  instancetype?: unknown,
): ReadTemplate {
  return { outer, metadata, spec, instancetype: instancetype != null, running: false, path };
}

function read<S extends z.ZodType>(
  schema: S,
  object: unknown,
  template: (found: z.output<S>) => ReadTemplate,
): ReadTemplate | string {
  const result = schema.safeParse(object);
  return result.success ? template(result.data) : issuesText(result.error);
}
