import type { CpuSet } from '../cpu-set.ts';
import { unevenCore } from '../host.ts';
import { splitCore } from '../host-cores.ts';
import type { KubeletState } from '../kubelet/state.ts';
import type { PlacementHost } from './needs.ts';
import { type Refusal, refusal } from './refusal.ts';

/**
 * Why a node can never promise whole cores. The kubelet divides CPUs by cores, and so treats a hybrid processor as one
 * without SMT. It gives whole cores although reserved CPUs split one, except where it distributes CPUs across NUMA
 * nodes.
 */
export function unfitForWholeCores({ host, reserved, offline, kubelet }: PlacementHost): Refusal | undefined {
  const uneven = unevenCore(host);
  if (uneven) {
    const text = `core ${uneven} has ${uneven.size} threads while others have a different number: the kubelet cannot tell whole cores on such a host`;
    return offline.isEmpty
      ? refusal('uneven-cores', text, { resource: 'cores' })
      : refusal('offline-threads', `CPUs ${offline.brief} are offline: ${text}`, { resource: 'cores' });
  }
  const split = splitCore(host, reserved);
  if (split === undefined || 'unpredictable' in kubelet || !kubelet.cpu?.options.distributeAcrossNuma) return undefined;
  const text = `reserved CPUs ${reserved} split core ${split}, of which distribute-cpus-across-numa gives out single threads`;
  return refusal('split-reservation', text, { resource: 'cores' });
}

/** The kubelet would give CPUs that are reserved or have an owner: it counts the threads of a core wrongly. */
export function givesTwice({ host, reserved, offline }: PlacementHost, cpus: CpuSet): Refusal {
  const state = cpus.intersects(reserved) ? 'reserved' : 'in use';
  const text = `the kubelet would give out CPUs ${cpus}, which are ${state}, because cores or sockets differ in size`;
  if (!offline.isEmpty) {
    return refusal('offline-threads', `CPUs ${offline.brief} are offline: ${text}`, { resource: 'cpus' });
  }
  const split = splitCore(host, reserved);
  if (split === undefined) return refusal('uneven-cores', text, { resource: 'cpus' });
  return refusal('split-reservation', `${text}; reserved CPUs ${reserved} split core ${split}`, { resource: 'cpus' });
}

/** The whole cores that have no owner and are not reserved. */
export function freeCores({ host, reserved }: PlacementHost, state: KubeletState): CpuSet[] {
  const free = state.defaultSet.minus(reserved);
  return host.cores.filter((core) => core.isSubsetOf(free));
}
