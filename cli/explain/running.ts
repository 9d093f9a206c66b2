import type { NodeTopology } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { isWholeCores } from '../../model/host-cores.ts';
import {
  cellsOfNetwork,
  type NetworkCells,
  type NetworkNeed,
  networkText,
  type PlacementNeeds,
} from '../../model/placement/needs.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/pod-needs.ts';
import { hostsOf } from '../support/hosts.ts';
import type { Finding } from './explanation.ts';
import type { ExplainedPod } from './objects.ts';
import { checkAgent, pinningOf } from './paused.ts';

/** Where a pod runs, and whether that is as straight as it was promised. */
export function runningPod(pod: ExplainedPod, topology: NodeTopology | undefined): Finding {
  const at = pod.spec.nodeName ?? '';
  const needs = placementNeedsOf(pod);
  if (needs.mask !== undefined) return maskedVm(pod, topology);
  if (!isExclusive(needs)) return { stage: 'running', why: `it runs on ${at}, on CPUs that it shares` };
  const reported = topology && hostsOf([topology]).hosts[0];
  const own = reported?.status.assignments.filter(({ podUID }) => podUID === pod.metadata.uid) ?? [];
  if (!reported || own.length === 0) {
    const why = `it runs on ${at}; which CPUs it has is not reported`;
    return { stage: 'running', why, help: [checkAgent(at)] };
  }
  const { host, networks } = reported.host;
  const cpus = unionOf(own.map((one) => CpuSet.parse(one.cpus)));
  const cells = cellsTouched(host, cpus);
  const crooked: string[] = [];
  if (!isWholeCores(host, cpus)) crooked.push(`its CPUs ${cpus} are no whole cores: it shares cores with others`);
  const apart = needs.networks
    .map((need) => farFrom(need, networks, CpuSet.of(cells), needs))
    .filter((one) => one !== undefined);
  crooked.push(...apart);
  const beside = needs.networks.length === 0 ? '' : ', near its networks';
  const why = `it runs on ${at}, on CPUs ${cpus} of NUMA node ${cells.join(',')}`;
  const straight = crooked.length === 0 ? [`whole cores${beside}`] : crooked;
  const help = crooked.length === 0 ? [] : ['migrate or restart it, so that it is placed anew'];
  return { stage: 'running', why, causes: straight, help };
}

/** A VM on shared CPUs with a mask: whether its agent has put its vCPUs there. */
function maskedVm(pod: ExplainedPod, topology: NodeTopology | undefined): Finding {
  const at = pod.spec.nodeName ?? '';
  const pinning = pinningOf(pod, topology);
  const about = pinning?.message === undefined ? '' : `: ${pinning.message}`;
  if (pinning?.state === 'pinned') {
    const causes = about === '' ? [] : [`not quite as asked for${about}`];
    return { stage: 'running', why: `it runs on ${at}, its vCPUs pinned by its CPU mask`, causes };
  }
  const why = `it runs on ${at}, and its CPU mask is not applied${about}`;
  if (pinning !== undefined) return { stage: 'running', why, help: ['correct the mask and restart the VM'] };
  return { stage: 'running', why: `${why}: its agent has not reported`, help: [checkAgent(at)] };
}

/** Why a network is not near the CPUs; undefined if it is. */
function farFrom(
  need: NetworkNeed,
  networks: NetworkCells,
  touched: CpuSet,
  { spansCells }: PlacementNeeds,
): string | undefined {
  const there = cellsOfNetwork(networks, need);
  const what = networkText(need);
  if (there === undefined) return `${what} is not on the node`;
  if (there.isEmpty) return `${what}: its NUMA node is not known`;
  if (spansCells ? touched.intersects(there) : touched.isSubsetOf(there)) return undefined;
  return `${what} is on NUMA node ${there}, its CPUs are on ${touched}`;
}
