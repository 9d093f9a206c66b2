import * as z from 'zod';
import { pod as podSchema } from '../../kube/resources.ts';
import { withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { ArgsError } from '../wire/args-error.ts';
import { UNKNOWN } from '../wire/name-index.ts';
import { firstIssues, parseJson } from '../wire/wire.ts';
import type { Extender } from './extender.ts';

const metaVictims = z.object({
  Pods: z.array(z.object({ UID: z.string() })).nullish(),
  NumPDBViolations: z.number().int().nullish(),
});
const victims = z.object({
  Pods: z.array(z.object({ metadata: z.object({ uid: z.string() }) })).nullish(),
  NumPDBViolations: z.number().int().nullish(),
});
const preemptionArgs = z.object({
  Pod: podSchema,
  NodeNameToVictims: z.record(z.string(), victims).nullish(),
  NodeNameToMetaVictims: z.record(z.string(), metaVictims).nullish(),
});

/**
 * Selects the nodes on which preemption would help.
 *
 * The scheduler chooses victims by its own counts. If the CPUs that they free would not suffice (on two NUMA nodes, or
 * halves of cores), they would be killed in vain, and again at the next attempt. So a node remains only if it would
 * admit the pod without the victims. A node without a possible prediction remains.
 *
 * @throws ArgsError, NotNow, ParseError
 */
export function answerPreempt(extender: Extender, policy: UnpredictablePolicy, body: Buffer): Buffer {
  if (body.length === 0) throw new ArgsError('the body is empty: expected ExtenderPreemptionArgs');
  const result = preemptionArgs.safeParse(parseJson(body));
  if (!result.success) throw new ArgsError(`the body is not ExtenderPreemptionArgs: ${firstIssues(result.error)}`);
  extender.assertActive();
  const { Pod: pod } = result.data;
  const needs = extender.needsOf(pod);
  const { fleet, reservations } = extender.state;

  const isWorthIt = (node: string, uids: readonly string[]): boolean => {
    const id = fleet.names.find(node);
    const host = id === UNKNOWN ? undefined : fleet.host(id);
    if (host === undefined || 'unpredictable' in host.kubelet || !needs.exclusive) return true;
    const gone = new Set(uids);
    const assumed = reservations.assumedOn(node, needs.request.uid).filter(({ uid }) => !gone.has(uid));
    return judgeHost(
      needs,
      withoutPods(host, gone),
      assumed.map((reservation) => reservation.pod),
      policy,
    ).fits;
  };

  const kept = Object.entries(victimsOf(result.data)).filter(([node, { uids }]) => isWorthIt(node, uids));
  return Buffer.from(
    JSON.stringify({
      NodeNameToMetaVictims: Object.fromEntries(
        kept.map(([node, { uids, violations }]) => [
          node,
          { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: violations },
        ]),
      ),
    }),
  );
}

/** Both forms of the protocol: whole pods, or their uids if the scheduler knows that the extender caches nodes. */
function victimsOf({ NodeNameToMetaVictims, NodeNameToVictims }: z.infer<typeof preemptionArgs>) {
  const meta = Object.entries(NodeNameToMetaVictims ?? {}).map(
    ([node, { Pods, NumPDBViolations }]) =>
      [node, { uids: (Pods ?? []).map(({ UID }) => UID), violations: NumPDBViolations ?? 0 }] as const,
  );
  const whole = Object.entries(NodeNameToVictims ?? {}).map(
    ([node, { Pods, NumPDBViolations }]) =>
      [node, { uids: (Pods ?? []).map(({ metadata }) => metadata.uid), violations: NumPDBViolations ?? 0 }] as const,
  );
  return Object.fromEntries([...whole, ...meta]);
}
