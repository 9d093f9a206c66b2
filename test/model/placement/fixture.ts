import type { HostReport } from '../../../model/kubelet/host-report.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { physnetResource, TUNNEL_RESOURCE } from '../../../model/names.ts';
import {
  type NetworkNeed,
  type PlacementHost,
  type PlacementNeeds,
  preparedHost,
} from '../../../model/placement/needs.ts';
import { placeOnFit } from '../../../model/placement/place.ts';
import type { Refusal } from '../../../model/placement/refusal.ts';
import { unfitShape } from '../../../model/placement/verdict.ts';
import { container, pod } from '../kubelet/fixture.ts';

/** Two NUMA nodes of eight CPUs (0-7, 8-15), cores of two threads, 0-1 reserved; full-pcpus-only, best-effort. */
export const REPORT: HostReport = {
  kubeletVersion: 'v1.36.2',
  cells: [
    { id: 0, cpus: '0-7' },
    { id: 1, cpus: '8-15' },
  ],
  cores: ['0-1', '2-3', '4-5', '6-7', '8-9', '10-11', '12-13', '14-15'],
  reserved: '0-1',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'best-effort', scope: 'container' },
  assignments: [],
  physnets: [
    { name: 'east', cells: '0' },
    { name: 'west', cells: '1' },
    { name: 'bond', cells: '0-1' },
    { name: 'vague', cells: '' },
  ],
  tunnel: { cells: '1' },
};

export function node(changes: Partial<HostReport> = {}): PlacementHost {
  return preparedHost({ ...REPORT, ...changes });
}

export function physnet(name: string, affinity: NetworkNeed['affinity'] = 'required'): NetworkNeed {
  return { name: `if-${name}`, kind: 'physnet', physnet: name, affinity };
}

export const TUNNEL: NetworkNeed = { name: 'if-tunnel', kind: 'tunnel', affinity: 'required' };

/**
 * A pod with one Guaranteed container (and an init container, if it has CPUs) that requests the device of each required
 * network, as the webhook sets it.
 */
export function needs(
  uid: string,
  cpus: number,
  networks: readonly NetworkNeed[] = [],
  more: Partial<PlacementNeeds> = {},
  init = 0,
): PlacementNeeds {
  const devices = networks
    .filter(({ affinity }) => affinity === 'required')
    .map(({ kind, physnet: of }) => [kind === 'tunnel' ? TUNNEL_RESOURCE : physnetResource(of ?? ''), '1']);
  const compute = container('compute', cpus, Object.fromEntries(devices));
  const request = podRequestOf(pod(uid, [compute], init > 0 ? [container('init', init)] : []));
  return { request, networks, ...more };
}

/** The extender's two steps for a node: its hardware and configuration, then the prediction of its kubelet. */
export function place(
  wanted: PlacementNeeds,
  host: PlacementHost,
  assumed: readonly PlacementNeeds[] = [],
): ReturnType<typeof placeOnFit> {
  const unfit = unfitShape(wanted, host, 'count-check');
  return (unfit as Refusal | undefined) ?? placeOnFit(wanted, host, assumed);
}
