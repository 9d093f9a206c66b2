import { amountText } from '../model/amounts.ts';
import {
  CORDON,
  filteringTaints,
  type SelectingSpec,
  selectsNode,
  toleratesAll,
} from '../model/launcher/node-selection.ts';
import { milliValue, parseQuantity } from '../model/quantity.ts';
import type { ExplainedNode, ExplainedPod } from './objects.ts';
import type { NodeOpinion, RefusedOpinion } from './opinions.ts';

/** Taints that the control plane sets on nodes that do not respond. */
const NOT_READY = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/** Selectors, cordons, taints. Spread, volumes are not predicted: their messages are in the pod's condition. */
export function schedulerRefusal(
  pod: { readonly spec: SelectingSpec },
  node: ExplainedNode,
): RefusedOpinion | undefined {
  const { name = '', labels = {} } = node.metadata;
  const refuse = (kind: RefusedOpinion['kind'], text: string, detail = text): RefusedOpinion => {
    return { node: name, fits: false, kind, text, detail };
  };
  if (!selectsNode(pod.spec, { name, label: (key) => labels[key] })) {
    const missed = Object.entries(pod.spec.nodeSelector ?? {}).filter(([key, value]) => labels[key] !== value);
    if (missed.length === 0) {
      const detail = 'its labels do not match the required node affinity';
      return refuse('not-selected', 'outside the pod’s node affinity', detail);
    }
    const text = `no label ${missed.map((entry) => entry.join('=')).join(', ')}`;
    return refuse('not-selected', text, `it has ${text}`);
  }
  const taints = filteringTaints(node.spec ?? {}).filter((each) => !toleratesAll(pod.spec.tolerations, [each]));
  if (taints.length === 0) return undefined;
  const isCordoned = taints.some(({ key }) => key === CORDON.key);
  const unready = taints.find(({ key }) => NOT_READY.includes(key));
  // Those that stay after the node was uncordoned and is ready.
  const lasting = taints.filter((taint) => taint.key !== CORDON.key && !NOT_READY.includes(taint.key));
  if (lasting.length > 0) {
    const names = lasting.map(({ key, effect }) => `${key}:${effect}`).join(', ');
    const text = lasting.length === 1 ? `taint ${names} is not tolerated` : `taints ${names} are not tolerated`;
    return refuse('tainted', isCordoned ? `${text}, and cordoned` : text);
  }
  if (unready !== undefined) return refuse('not-ready', 'node is not ready', `taint ${unready.key}`);
  return refuse('cordoned', 'cordoned', `cordoned; kubectl uncordon ${name}`);
}

/** By the requests of its pods; undefined if it has enough. @param others pods that count on the node */
export function shortOf(
  pod: ExplainedPod,
  node: ExplainedNode,
  others: readonly ExplainedPod[],
): RefusedOpinion | undefined {
  const allocatable = node.status?.allocatable ?? {};
  const refused = { node: node.metadata.name ?? '', fits: false } as const;
  for (const [resource, request] of requestsOf(pod)) {
    const there = milli(allocatable[resource] ?? '0');
    const amount = (thousandths: number) => amountText(resource, thousandths / 1000);
    const used = others.reduce((sum, other) => sum + (requestsOf(other).get(resource) ?? 0), 0);
    if (used + request <= there) continue;
    // More than the whole node has. Devices do not count, because another node may have more.
    const isSize = resource === 'cpu' || resource === 'memory' || resource.startsWith('hugepages-');
    if (isSize && request > there) {
      const numbers = `${resource}: ${amount(request)} requested, and the node has ${amount(there)} for pods`;
      return {
        ...refused,
        kind: 'more-than-node',
        text: `more ${resource} requested than the node has`,
        detail: numbers,
      };
    }
    const free = `${amount(Math.max(0, there - used))} of ${amount(there)} free`;
    const detail = `${resource}: ${amount(request)} requested, ${free}`;
    return { ...refused, kind: 'short-of', text: `too little ${resource}`, detail };
  }
  return undefined;
}

function requestsOf({ spec }: ExplainedPod): Map<string, number> {
  const sums = new Map<string, number>();
  const add = (requests: Readonly<Record<string, string>> | undefined, combine: (a: number, b: number) => number) => {
    for (const [name, text] of Object.entries(requests ?? {}))
      sums.set(name, combine(sums.get(name) ?? 0, milli(text)));
  };
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const container of [...spec.containers, ...sidecars]) add(container.resources?.requests, (a, b) => a + b);
  for (const container of spec.initContainers ?? [])
    if (!sidecars.includes(container)) add(container.resources?.requests, Math.max);
  return sums;
}

function milli(text: string): number {
  try {
    return milliValue(parseQuantity(text));
  } catch {
    return 0;
  }
}

/** Uncordoning a node that is also full does not help. */
export function together(refused: RefusedOpinion, opinion: NodeOpinion): RefusedOpinion {
  if (refused.kind !== 'cordoned' || opinion.fits) return refused;
  const also = (reason: string) => `cordoned, and ${reason}`;
  return { ...refused, kind: 'cordoned-and-more', text: also(opinion.text), detail: also(opinion.detail) };
}
