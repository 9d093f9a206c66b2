import { alignedCpus, annotatedThreadsPerCore } from '../alignment.ts';
import { podCpus } from '../kubelet/pod-request.ts';
import { type PlacementHost, type PlacementNeeds, withAssignments } from './needs.ts';
import { judgeHost } from './verdict.ts';

/** Tried against the prediction of the node's kubelet. */
export interface TriedChanges {
  /** If every VM on the node ended. */
  readonly emptied: boolean;
  /** If it asked for whole cores and were padded to them; undefined: it does. */
  readonly padded?: boolean | undefined;
  /** If its networks were only preferred; undefined: none is required. */
  readonly preferred?: boolean | undefined;
  /** The smallest number of CPUs by which it would have to shrink to fit on the empty node; undefined: none helps. */
  readonly fewerCpus?: number | undefined;
}

/** @throws ParseError if a list of the report is not a CPU list */
export function tryChanges(needs: PlacementNeeds, host: PlacementHost): TriedChanges {
  const { networks, wholeCores = false } = needs;
  const empty = withAssignments(host, []);
  const fits = (changed: PlacementNeeds, node: PlacementHost) => {
    const verdict = judgeHost({ ...changed, key: undefined }, node, [], 'count-check');
    return verdict.fits && verdict.cpus !== undefined;
  };
  const far = networks.map((network) => ({ ...network, affinity: 'preferred' as const }));
  const emptied = fits(needs, empty);
  return {
    emptied,
    padded: wholeCores ? undefined : fits(padded(needs, host), host),
    preferred: networks.some(({ affinity }) => affinity === 'required')
      ? fits({ ...needs, networks: far }, host)
      : undefined,
    fewerCpus: emptied ? undefined : fewest(needs, (smaller) => fits(smaller, empty)),
  };
}

/** As the webhook pads it for nodes like this one. */
function padded(needs: PlacementNeeds, { host }: PlacementHost): PlacementNeeds {
  const threads = annotatedThreadsPerCore([host.threadsPerCore]);
  const containers = needs.request.containers.map((container) => ({
    ...container,
    cpus: alignedCpus(container.cpus, threads),
  }));
  return { ...needs, wholeCores: true, request: { ...needs.request, containers } };
}

/** By bisection: a kubelet that accepts a pod accepts a smaller one, except for whole cores, in whose steps it goes. */
function fewest(needs: PlacementNeeds, fits: (smaller: PlacementNeeds) => boolean): number | undefined {
  const { request } = needs;
  const largest = Math.max(...request.containers.map(({ cpus }) => cpus));
  const step = largest % 2 === 0 ? 2 : 1;
  const without = (less: number): PlacementNeeds => {
    const containers = request.containers.map((container) =>
      container.cpus === largest ? { ...container, cpus: container.cpus - less } : container,
    );
    return { ...needs, request: { ...request, containers } };
  };
  let low = 0;
  let high = Math.ceil(largest / step) - 1;
  if (high < 1 || !fits(without(high * step))) return undefined;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(without(middle * step))) high = middle;
    else low = middle;
  }
  return podCpus(request) - podCpus(without(high * step).request);
}
