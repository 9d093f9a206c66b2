import { filteringTaints, selectsNode, type Taint, toleratesAll } from '../../model/launcher/node-selection.ts';
import { groupBy } from '../../model/lists.ts';
import type { KubeNode, KubePod } from '../objects.ts';
import { type Amounts, amountsOf, podRequests } from '../pod-requests.ts';
import type { Extender } from './extender.ts';
import type { RequiredPodAffinity } from './pod-affinity.ts';

/** Why a node does not fit. Unresolvable: evicting pods would not help. */
interface Misfit {
  readonly reasons: readonly string[];
  readonly unresolvable: boolean;
}

interface Load {
  readonly requested: Amounts;
  readonly pods: number;
}

const NOT_READY = 'node.kubernetes.io/not-ready';

/** The filters of the default profile up to the first that refuses. */
export function filterNode(pod: KubePod, requests: Amounts, node: KubeNode, load: Load): Misfit | undefined {
  const unresolvable = (reason: string) => ({ reasons: [`node(s) ${reason}`], unresolvable: true });
  const tolerated = (taint: Taint) => toleratesAll(pod.spec.tolerations, [taint]);
  const { unschedulable } = node.spec ?? {};
  if (!filteringTaints({ unschedulable }).every(tolerated)) return unresolvable('were unschedulable');
  const taint = filteringTaints({ taints: taintsOf(node) }).find((candidate) => !tolerated(candidate));
  if (taint) return unresolvable(`had untolerated taint {${taint.key}: ${taint.value ?? ''}}`);
  const { name, labels = {} } = node.metadata;
  const isSelected = selectsNode(pod.spec, { name, label: (key) => labels[key] });
  if (!isSelected) return unresolvable("didn't match Pod's node affinity/selector");
  return resourceMisfit(requests, node, load);
}

/** The taints of a node, including the one that the node lifecycle controller sets on a node that is not Ready. */
function taintsOf({ spec, status }: KubeNode) {
  const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
  const taints = spec?.taints ?? [];
  return isReady ? taints : [...taints, { key: NOT_READY, effect: 'NoSchedule' }];
}

function resourceMisfit(requests: Amounts, { status }: KubeNode, { requested, pods }: Load): Misfit | undefined {
  const allocatable = amountsOf(status?.allocatable);
  const reasons: string[] = [];
  let unresolvable = false;
  const allocatablePods = allocatable.get('pods');
  const hasRoom = allocatablePods === undefined || BigInt(pods + 1) * 1_000_000_000n <= allocatablePods;
  if (!hasRoom) reasons.push('Too many pods');
  for (const [name, amount] of requests) {
    if (amount === 0n) continue;
    const total = allocatable.get(name) ?? 0n;
    if (amount <= total - (requested.get(name) ?? 0n)) continue;
    reasons.push(`Insufficient ${name}`);
    if (amount > total) unresolvable = true;
  }
  return reasons.length > 0 ? { reasons, unresolvable } : undefined;
}

/** What the scheduler knows of the cluster when it tries a pod. */
export interface Snapshot {
  readonly nodes: readonly KubeNode[];
  loadOf(nodeName: string): Load;
  /** The required affinity and anti-affinity of the pod, and the anti-affinity of others. */
  readonly podAffinity: RequiredPodAffinity;
}

type Decision = { readonly node: string } | { readonly misfits: ReadonlyMap<string, Misfit> };

/** In-tree filters, extenders, then scores: the fewest pods, then the first name. @throws ExtenderError */
export async function chooseNode(
  pod: KubePod,
  { nodes, loadOf, podAffinity }: Snapshot,
  extenders: readonly Extender[],
): Promise<Decision> {
  const requests = podRequests(pod);
  const misfits = new Map<string, Misfit>();
  let feasible = nodes.filter((node) => {
    const misfit = filterNode(pod, requests, node, loadOf(node.metadata.name)) ?? podAffinity.misfit(node);
    if (misfit) misfits.set(node.metadata.name, misfit);
    return misfit === undefined;
  });
  for (const extender of extenders) {
    if (extender.filters && feasible.length > 0) feasible = await filterBy(extender, pod, feasible, misfits);
  }
  const [only] = feasible;
  if (only === undefined) return { misfits };
  if (feasible.length === 1) return { node: only.metadata.name };

  const scores = new Map(feasible.map(({ metadata: { name } }) => [name, -loadOf(name).pods]));
  await Promise.all(extenders.map((extender) => addScores(extender, pod, feasible, scores)));
  const [best] = [...scores].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return { node: best![0] };
}

async function filterBy(extender: Extender, pod: KubePod, nodes: KubeNode[], misfits: Map<string, Misfit>) {
  const { names, failed, unresolvable } = await extender.filter(pod, nodes);
  for (const [name, reason] of failed) misfits.set(name, { reasons: [reason], unresolvable: false });
  for (const [name, reason] of unresolvable) misfits.set(name, { reasons: [reason], unresolvable: true });
  const passed = new Set(names);
  return nodes.filter(({ metadata }) => passed.has(metadata.name));
}

/** Adds the extenders' scores. A failed prioritize call only loses its scores. */
async function addScores(extender: Extender, pod: KubePod, nodes: readonly KubeNode[], scores: Map<string, number>) {
  const extenderScores = await extender.prioritize(pod, nodes).catch(() => new Map<string, number>());
  for (const [name, score] of extenderScores) {
    const sum = scores.get(name);
    if (sum !== undefined) scores.set(name, sum + score);
  }
}

/** Source: pkg/scheduler/framework/types.go, FitError.Error; post-filter texts as in kube-scheduler 1.36. */
export function fitErrorMessage(nodes: number, misfits: ReadonlyMap<string, Misfit>): string {
  if (nodes === 0) return '0/0 nodes are available: no nodes available to schedule pods.';
  const reasons = counted([...misfits.values()].flatMap((misfit) => misfit.reasons));
  const [unhelpful, none] = [
    'Preemption is not helpful for scheduling',
    'No preemption victims found for incoming pod',
  ];
  const preemption = counted([...misfits.values()].map(({ unresolvable }) => (unresolvable ? unhelpful : none)));
  const head = `0/${nodes} nodes are available`;
  return `${head}: ${reasons}. no new claims to deallocate, preemption: ${head}: ${preemption}.`;
}

function counted(texts: readonly string[]): string {
  const counts = [...groupBy(texts, (text) => text)].map(([text, same]) => `${same.length} ${text}`);
  return counts.sort().join(', ');
}
