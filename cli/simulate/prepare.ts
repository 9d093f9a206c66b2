import { hostsOf } from '../../diagnosis/hosts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CPUS_FROM_CLAIM } from '../../model/launcher/annotation.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import { type Demand, demandOf, parseShape } from './demand.ts';
import { requiredNetworks, type VmFile } from './file.ts';
import { expandVm } from './instancetypes.ts';
import { candidatesOf, hostsForDemands, type Scene } from './scene.ts';

/** @param client undefined without a cluster @throws CliError, KubeError */
export async function prepare(
  shapes: readonly string[],
  files: readonly VmFile[],
  scene: Scene,
  client?: Pick<KubeClient, 'get'>,
) {
  const reported = hostsOf(scene.topologies);
  const threadsOf = (spec: SelectingSpec) =>
    candidatesOf(scene, reported, spec).map(({ host }) => host.host.threadsPerCore);
  const instancetypes = files.flatMap((file) => file.instancetypes);
  const notes: string[] = [];
  /** VMs whose place is not predicted. */
  const unknown: string[] = [];
  const demands: Demand[] = [];
  for (const { vms, nads } of files) {
    for (const declared of vms) {
      const vm = await expandVm(declared, instancetypes, client);
      const { dra, dedicatedCpuPlacement } = vm.vmi.spec.domain.cpu ?? {};
      if (dra !== undefined) {
        unknown.push(`${vm.name}: ${CPUS_FROM_CLAIM}`);
        continue;
      }
      if (dedicatedCpuPlacement !== true) {
        notes.push(`${vm.name} has no dedicated CPUs and is ignored`);
        continue;
      }
      const { networks, notes: networkNotes } = requiredNetworks(vm, [...nads, ...scene.nads]);
      notes.push(...networkNotes);
      demands.push(demandOf({ ...vm, networks }, threadsOf(vm.vmi.spec)));
    }
  }
  demands.push(...shapes.map((text) => demandOf(parseShape(text), threadsOf({}))));
  return {
    demands,
    targets: hostsForDemands(scene, reported, demands),
    notes: [...unknown, ...notes],
    isComplete: unknown.length === 0,
  };
}
