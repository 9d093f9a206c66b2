import { join } from 'node:path';
import type { InterferenceStatus } from '../../model/agent-status.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { Interference } from '../interrupts/interference.ts';
import { KernelFiles } from '../interrupts/kernel-files.ts';
import { InterruptMoves } from '../interrupts/moves.ts';
import { Originals } from '../interrupts/originals.ts';
import type { Duty } from '../lifecycle/duty.ts';
import { CgroupTree } from '../processes/cgroup-tree.ts';
import { bootId, OnlineCpus } from '../processes/proc.ts';
import type { AgentParts, HostParts } from './parts.ts';
import type { VmPinningDuty } from './thread-affinity.ts';

/** The duty that moves also runs in the other modes, since an earlier agent may have moved something. */
export function createInterruptDuties(
  parts: AgentParts,
  { runs, assignments, networks, ovs }: Pick<HostParts, 'runs' | 'assignments' | 'networks' | 'ovs'>,
  vms: Pick<VmPinningDuty, 'guests'> | undefined,
) {
  const { config, nodeName, log } = parts;
  const { interrupts: mode, procRoot, sysfsRoot, etcRoot, irqbalanceRundir } = config;
  const common = { procRoot, sysfsRoot, nowSeconds: monotonicSeconds, assignments };
  // The name contains the node, since one machine may run an agent for each of several.
  const path = join(config.stateDir, `interrupts-${nodeName}.json`);
  const originals = new Originals({ path, bootId: bootId(), log });
  const online = new OnlineCpus();
  const pmdCpus = () => networks.view().pmdCpus.union(ovs?.pmdCpus() ?? CpuSet.EMPTY);
  const moves = new InterruptMoves({
    ...parts,
    ...common,
    ...{ etcRoot, irqbalanceRundir, originals },
    files: new KernelFiles(),
    affinity: createAffinity(),
    isMoving: mode === 'move',
    cpus: () => ({
      online: online.read(),
      quiet: pmdCpus().union(runs.run?.facts.isolated ?? CpuSet.EMPTY),
      cells: runs.run?.facts.host.cells ?? [],
    }),
  });
  const duties: Duty[] = [{ name: 'interrupt-moves', run: (signal) => moves.run(signal) }];
  if (mode === 'off') return { duties, moves, interference: undefined, status: undefined };
  const tree = new CgroupTree(config.cgroupRoot);
  const interference = new Interference({ ...parts, ...common, tree, guests: () => vms?.guests() ?? [] });
  duties.push({ name: 'interference', run: (signal) => interference.run(signal) });
  const status = (): InterferenceStatus => {
    const { problems, ...moved } = moves.status();
    return { ...moved, vms: interference.vms(), problems: [...interference.problems, ...problems] };
  };
  return { duties, moves, interference, status };
}
