import type { CpuSet } from '../cpu-set.ts';
import { unevenCore } from '../host.ts';
import type { KubeletState } from '../kubelet/state.ts';
import type { PlacementHost } from './needs.ts';
import { type Refusal, refusal } from './refusal.ts';

/**
 * Why a node can never promise whole cores. The kubelet divides CPUs by cores, and so treats a hybrid processor as one
 * without SMT. If reserved CPUs split a core, its other thread may be assigned separately.
 */
export function unfitForWholeCores({ host, reserved }: PlacementHost): Refusal | undefined {
  const uneven = unevenCore(host);
  if (uneven) {
    const text = `core ${uneven} has ${uneven.size} threads while others have a different number: the kubelet cannot tell whole cores on such a host`;
    return refusal('no-whole-cores', text, { resource: 'cores' });
  }
  const split = host.cores.find((core) => core.intersects(reserved) && !core.isSubsetOf(reserved));
  if (!split) return undefined;
  const text = `reserved CPUs ${reserved} split core ${split}: whole cores cannot be promised on this node`;
  return refusal('no-whole-cores', text, { resource: 'cores' });
}

/** The whole cores that have no owner and are not reserved. */
export function freeCores({ host, reserved }: PlacementHost, state: KubeletState): CpuSet[] {
  const free = state.defaultSet.minus(reserved);
  return host.cores.filter((core) => core.isSubsetOf(free));
}
