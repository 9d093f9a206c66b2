import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../api-server/built-in-types.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { KubeObject, VirtualMachineInstance } from '../objects.ts';
import type { Holds } from './holds.ts';
import { instanceOf, isStartedAgain, isWanted, machineStatusOf, startFailureOf } from './lifecycle.ts';
import type { Turns } from './turns.ts';

export interface MachineSyncDeps {
  readonly client: LocalClient;
  readonly turns: Pick<Turns, 'takeLater'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly holds: Holds;
}

/** Reconciles a VirtualMachine: creates or deletes its instance and writes its status. */
export function createMachineSync({ client, turns, now, holds }: MachineSyncDeps) {
  const end = async (machine: KubeObject, vmi: VirtualMachineInstance | undefined) => {
    if (!vmi) await holds.release(VIRTUAL_MACHINES, machine);
    else if (!vmi.metadata.deletionTimestamp) await client.delete(VIRTUAL_MACHINE_INSTANCES, vmi);
  };
  const start = async (machine: KubeObject, pause: number) => {
    const { namespace = 'default', name } = machine.metadata;
    if (pause > 0) turns.takeLater(`vm/${namespace}/${name}`, pause, () => sync(namespace, name));
    else await client.create(VIRTUAL_MACHINE_INSTANCES, instanceOf(machine));
  };
  const sync = async (namespace: string, name: string): Promise<void> => {
    const machine = client.get(VIRTUAL_MACHINES, namespace, name);
    const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    if (!machine) return;
    if (machine.metadata.deletionTimestamp) return end(machine, vmi);
    if (!(await holds.hold(VIRTUAL_MACHINES, machine))) return;
    const startFailure = startFailureOf(machine, vmi, now());
    const pause = (Date.parse(startFailure?.retryAfterTimestamp ?? '') - now()) / 1000;
    if (isWanted(machine) && !vmi) await start(machine, pause);
    const present = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    const change = (draft: KubeObject) => {
      draft.status = machineStatusOf(present && (present.status?.phase ?? 'Pending'), startFailure);
    };
    // Before the deletion of the instance, so that each failure counts exactly once.
    await client.edit(VIRTUAL_MACHINES, machine, change, 'status');
    const isToGo = !isWanted(machine) || isStartedAgain(machine, vmi?.status?.phase);
    if (vmi && !vmi.metadata.deletionTimestamp && isToGo) await client.delete(VIRTUAL_MACHINE_INSTANCES, vmi);
  };
  return sync;
}
