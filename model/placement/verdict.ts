import type { CpuSet } from '../cpu-set.ts';
import { misalignedText } from '../kubelet/rejection.ts';
import { countCheck } from './count-check.ts';
import { cellsOfNetwork, keepsWholeCores, type PlacementHost, type PlacementNeeds, sharesOn } from './needs.ts';
import { unfitForNetworks } from './network-reach.ts';
import { exclusiveCpus, place } from './place.ts';
import type { Refusal, RefusalReason } from './refusal.ts';
import { unfitForWholeCores } from './whole-cores.ts';

/** Why a node is refused; labels a metric. */
export type RefusalKind =
  | RefusalReason
  | 'unknown-node'
  | 'no-report'
  | 'stale-report'
  | 'quarantined'
  | 'unpredictable'
  | 'dpu'
  | 'no-such-network'
  | 'cpu-mask'
  | 'mask-elsewhere'
  | 'dra-cpu'
  | 'refused-on-host'
  | 'owner-backoff'
  | 'hints-unserved'
  | 'other';

export type NodeVerdict =
  | {
      readonly fits: true;
      /** A whole number from 0 to 10. */
      readonly score: number;
      /** What the kubelet would give; undefined where that is not predicted. */
      readonly cpus: CpuSet | undefined;
      /** The NUMA nodes they are on. */
      readonly cells: readonly number[];
      readonly warnings: readonly string[];
    }
  | {
      readonly fits: false;
      readonly kind: RefusalKind;
      /** Of few distinct values, since the scheduler counts nodes by it. */
      readonly text: string;
      /** For people: what is short, where, how much was wanted and how much there is. */
      readonly detail: string;
      /** CPUs or whole cores, as the detail says, that are too few; undefined where no number would help. */
      readonly missing?: number | undefined;
    };

export type Refused = Extract<NodeVerdict, { fits: false }>;

/** How each refusal for a DPU begins: what the scheduler has written into a pod's condition is recognized by it. */
export const DPU_REFUSAL = 'DPU not ready';

/**
 * What happens to nodes that cannot be predicted: refused, or passed with the lowest score if the CPUs suffice by
 * count.
 */
export type UnpredictablePolicy = 'refuse' | 'count-check';

export const LOWEST = 0;
const HIGHEST = 10;

/** A verdict that a node does not take a pod. `text` has few distinct values, `detail` names the node's own. */
export function refuse(kind: RefusalKind, text: string, detail = text): Refused {
  return { fits: false, kind, text, detail };
}

/** Nodes of which nothing is known, or nothing new. */
export const NO_REPORT = refuse('no-report', 'node does not report its topology');
export const STALE_REPORT = refuse('stale-report', 'node’s agent has stopped reporting');

/** A kubelet ignores a resource that it never had, and refuses a pod that requests a resource with none left. */
export const HINTS_UNSERVED = refuse(
  'hints-unserved',
  'node’s agent does not serve the devices of preferred networks',
  'the kubelet has near.plumbline.dev devices at 0, and refuses pods that request one, until the agent serves them again',
);

/** A node that passes although nothing is predicted of it. */
export const UNCHECKED: NodeVerdict = Object.freeze({
  fits: true,
  score: LOWEST,
  cpus: undefined,
  cells: [],
  warnings: [],
});

/**
 * Would this node's kubelet take the pod, on CPUs near its networks?
 * @param assumed pods that the node has been promised and that its report does not show yet, oldest first
 */
export function judgeHost(
  needs: PlacementNeeds,
  host: PlacementHost,
  assumed: readonly PlacementNeeds[],
  policy: UnpredictablePolicy,
): NodeVerdict {
  if (sharesOn(needs, host)) return UNCHECKED;
  const unfit = unfitShape(needs, host, policy);
  if (unfit) return unfit;
  const placement = place(needs, host, assumed);
  if (placement.outcome === 'unpredictable') return judgeByCount(needs, host, assumed);
  if (placement.outcome === 'refused') return refusedFor(placement.refusal);
  return {
    fits: true,
    score: 1 + Math.round(placement.score * (HIGHEST - 1)),
    cpus: exclusiveCpus(placement.containers),
    cells: placement.cells,
    warnings: placement.warnings,
  };
}

/** All that can be said of a node whose kubelet is not predicted or whose report is old. */
export function judgeByCount(
  needs: PlacementNeeds,
  host: PlacementHost,
  assumed: readonly PlacementNeeds[],
): NodeVerdict {
  if (sharesOn(needs, host)) return UNCHECKED;
  const shortage = countCheck(needs, host, assumed);
  return shortage ? refusedFor(shortage) : UNCHECKED;
}

/** What rules out every node of a shape, whatever runs there. */
export function unfitShape(
  needs: PlacementNeeds,
  host: PlacementHost,
  policy: UnpredictablePolicy,
): Refused | undefined {
  if (sharesOn(needs, host)) return undefined;
  const absent = absentNetwork(needs, host);
  if (absent !== undefined) return refuse('no-such-network', `${absent} is not on the node`);
  const unreachable = unfitForNetworks(needs, host);
  if (unreachable) return refusedFor(unreachable);
  const { kubelet } = host;
  if ('unpredictable' in kubelet) {
    if (policy === 'count-check') return undefined;
    return refuse('unpredictable', `kubelet cannot be predicted: ${kubelet.unpredictable}`);
  }
  if (!kubelet.cpu) return refuse('no-exclusive-cpus', 'node gives no exclusive CPUs', 'CPU manager policy none');
  const { fullPcpusOnly } = kubelet.cpu.options;
  const split = keepsWholeCores(needs, host) || fullPcpusOnly ? unfitForWholeCores(host) : undefined;
  if (split) return refusedFor(split);
  const { cpusPerCore } = kubelet.topology;
  const odd = fullPcpusOnly && needs.request.containers.find(({ cpus }) => cpus % cpusPerCore !== 0);
  if (!odd) return undefined;
  const text = misalignedText(odd.cpus, cpusPerCore);
  return refuse('misaligned', text, `container ${odd.name}: ${text}`);
}

/** The verdict for a refusal of the predicted kubelet. `missing` is in the unit of the resource. */
export function refusedFor({ reason, text, detail, wanted, available }: Refusal): Refused {
  const refused = refuse(reason, text, detail);
  return wanted === undefined || available === undefined ? refused : { ...refused, missing: wanted - available };
}

/** The kubelet starts a pod even where no plugin advertises a resource that it asks for, so this must refuse it. */
function absentNetwork(needs: PlacementNeeds, { networks }: PlacementHost): string | undefined {
  const absent = needs.networks.find(
    (need) => need.affinity === 'required' && cellsOfNetwork(networks, need) === undefined,
  );
  if (absent === undefined) return undefined;
  return absent.kind === 'tunnel' ? 'the tunnel' : `physnet ${absent.physnet}`;
}
