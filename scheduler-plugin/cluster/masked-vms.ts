import type * as z from 'zod';
import { instancesPath, isOfMachine, machinesPath, pausedCondition } from '../../kube/cluster-view/vmis.ts';
import { createReflector, type WatchOptions } from '../../kube/reflector.ts';
import { startedInstance, virtualMachine } from '../../kube/virtual-machines.ts';
import { parsePausedStart } from '../../model/launcher/paused-start.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { type MaskedVm, maskedVmOf } from '../../model/placement/mask-fit.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';

/** A VMI that has a CPU mask, or whose start is paused. */
export type MaskedInstance = Readonly<NonNullable<ReturnType<typeof instanceOf>>>;

/** Nothing is kept of VMs without a mask. Without KubeVirt there are none. */
interface MaskedVmsOptions extends WatchOptions {
  readonly onInstance: (key: string, instance: MaskedInstance | undefined) => void;
}

/** Of VMs, and of VMIs: a mask and selectors of 16 KiB count 64 KiB. */
const MAX_BYTES = 16 * 1024 * 1024;

export function createMaskedVms({ onInstance, ...options }: MaskedVmsOptions) {
  const shared = { ...options, optional: true };
  const machines = createReflector({
    ...shared,
    path: machinesPath(),
    schema: virtualMachine,
    budget: new TenantBudget(MAX_BYTES),
    project: ({ spec: { template, instancetype } }) =>
      maskedVmOf({ metadata: template.metadata ?? {}, spec: template.spec, vcpusUnknown: instancetype != null }),
  });
  const instances = createReflector({
    ...shared,
    path: instancesPath(),
    schema: startedInstance,
    budget: new TenantBudget(MAX_BYTES),
    project: instanceOf,
    onChange: ({ key, after }) => onInstance(key, after),
  });
  return {
    run: (signal: AbortSignal) => Promise.all([machines.run(signal), instances.run(signal)]),
    /** VMs, and VMIs that do not belong to a VM. */
    *all(): Generator<MaskedVm> {
      for (const machine of machines.items.values()) if (machine) yield machine;
      for (const instance of instances.items.values())
        if (instance?.masked && !instance.ofMachine) yield instance.masked;
    },
  };
}

function instanceOf({ metadata, spec, status }: z.infer<typeof startedInstance>) {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
  const record = parsePausedStart(metadata.annotations?.[PAUSED_START_ANNOTATION]);
  const masked = maskedVmOf({ metadata, spec, vcpusUnknown: false });
  if ((masked === undefined && record === undefined) || metadata.deletionTimestamp !== undefined) return undefined;
  const pause = pausedCondition({ status });
  const { phase = '', nodeName, activePods } = status ?? {};
  return {
    namespace,
    name,
    uid,
    version: resourceVersion,
    record,
    phase,
    paused: pause && { reason: pause.reason ?? '', since: pause.lastTransitionTime ?? 'unknown' },
    node: nodeName,
    /** Nodes by the uid of the launcher. */
    pods: activePods ?? {},
    masked,
    /** Its VM has the same mask, and continues to exist when it is stopped. */
    ofMachine: isOfMachine(metadata),
  };
}
