import { unpredictableFor, withFreeResources, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { predictionSeconds } from '../filter/node-verdicts.ts';
import { type ExtenderPreemptionArgs, extenderPreemptionArgs, parseBody } from './args.ts';
import type { Extender } from './extender.ts';

/**
 * The nodes on which preemption would help: those that would admit the pod without the victims, whose CPUs (on two NUMA
 * nodes, or halves of cores) may not suffice. A node without a possible prediction remains.
 * @returns an ExtenderPreemptionResult (k8s.io/kube-scheduler/extender/v1/types.go) @throws ArgsError, NotNow,
 * ParseError
 */
export function preempt(extender: Extender, policy: UnpredictablePolicy, body: unknown) {
  const args = parseBody(extenderPreemptionArgs, body, 'ExtenderPreemptionArgs');
  extender.assertActive();
  const needs = extender.needsOf(args.Pod);
  const { fleet } = extender.state;

  const wouldHelp = (name: string, victims: ReadonlySet<string>): boolean => {
    const node = fleet.get(name);
    const host = node && fleet.host(node);
    if (host === undefined || !needs.exclusive || unpredictableFor(needs, host) !== undefined) return true;
    const assumed = extender.state
      .inFlightOn(name, needs.request.uid)
      .filter(({ request }) => !victims.has(request.uid));
    return judgeHost(needs, withFreeResources(withoutPods(host, victims)), assumed, policy).fits;
  };

  const offered = victimsOf(args);
  const until = extender.now() + predictionSeconds(offered.size);
  const helpful = [...offered].filter(([node, { uids }]) => extender.now() <= until && wouldHelp(node, new Set(uids)));
  const victims = helpful.map(([node, { uids, violations }]) => {
    return [node, { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: violations }] as const;
  });
  return { NodeNameToMetaVictims: Object.fromEntries(victims) };
}

/** Whole pods, or their uids if the scheduler knows that the extender caches nodes. */
function victimsOf({ NodeNameToMetaVictims, NodeNameToVictims }: ExtenderPreemptionArgs) {
  const victims = new Map<string, { readonly uids: readonly string[]; readonly violations: number }>();
  for (const [node, { Pods, NumPDBViolations }] of Object.entries({ ...NodeNameToVictims, ...NodeNameToMetaVictims })) {
    const uids = (Pods ?? []).map((pod) => ('UID' in pod ? pod.UID : pod.metadata.uid));
    victims.set(node, { uids, violations: NumPDBViolations ?? 0 });
  }
  return victims;
}
