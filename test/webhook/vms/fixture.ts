import type { AdmissionAnswer, AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { createVmValidation } from '../../../webhook/vms/validate-vm.ts';
import { optionsOf, requestFor } from '../launcher-fixture.ts';

export const CPU_MASK = 'plumbline.dev/cpu-mask';

export type Kind =
  | 'VirtualMachine'
  | 'VirtualMachineInstance'
  | 'VirtualMachineInstanceReplicaSet'
  | 'VirtualMachinePool';

export interface Vm {
  /** Of the template, or of the VMI. */
  readonly annotations?: Record<string, string>;
  /** Of the template; by default two cores. */
  readonly spec?: object;
  /** Of the VM itself. */
  readonly instancetype?: object;
  readonly metadata?: object;
  readonly status?: object;
}

/** An object of one of KubeVirt's kinds. */
export function objectOf({ annotations = {}, spec = {}, metadata = {}, ...more }: Vm, kind: Kind): object {
  const template = { metadata: { annotations }, spec: { domain: { cpu: { cores: 2 } }, ...spec } };
  const outer = { metadata: { name: 'vm', ...metadata }, ...(more.status && { status: more.status }) };
  switch (kind) {
    case 'VirtualMachineInstance':
      return { metadata: { name: 'vm', annotations }, spec: template.spec };
    case 'VirtualMachinePool':
      return { ...outer, spec: { virtualMachineTemplate: { spec: { template } } } };
    default:
      return { ...outer, spec: { template, ...(more.instancetype && { instancetype: more.instancetype }) } };
  }
}

export interface VmReview {
  readonly kind?: Kind;
  /** Its earlier state: the review is of an update. */
  readonly old?: Vm | undefined;
  readonly options?: Partial<Parameters<typeof createVmValidation>[0]>;
  readonly request?: Partial<AdmissionRequest>;
}

export function reviewVm(
  vm: Vm,
  { kind = 'VirtualMachine', old, options, request }: VmReview = {},
): Promise<AdmissionAnswer> {
  const update = old && ({ operation: 'UPDATE', oldObject: objectOf(old, kind) } as const);
  return createVmValidation({ ...optionsOf(), ...options })(
    requestFor(objectOf(vm, kind), { kind: { group: 'kubevirt.io', version: 'v1', kind }, ...update, ...request }),
  );
}
