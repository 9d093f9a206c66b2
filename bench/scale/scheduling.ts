import { LAUNCHER_CONTAINER, offeredNames } from '../scheduler-plugin/nodes.ts';
import { createClient } from '../support/http-load.ts';

/** A pod that waits for a node. */
export interface WaitingPod {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
}

/** Calls the extender as kube-scheduler does for one pod; resolves with the name of the node with the highest score. */
export type ChooseNode = (pod: WaitingPod, turn: number) => Promise<string>;

/** Orders of the names that are made in advance: making one takes longer than the call. */
const ORDERS = 8;
const MIN_OFFERED_PODS = 100;

/**
 * The number of nodes that kube-scheduler offers of those that suit a pod, if a profile does not set
 * percentageOfNodesToScore. Source: numFeasibleNodesToFind in pkg/scheduler/schedule_one.go.
 */
export function offeredByDefault(nodes: number): number {
  const percentage = Math.max(5, 50 - Math.floor(nodes / 125));
  return Math.min(nodes, Math.max(MIN_OFFERED_PODS, Math.floor((nodes * percentage) / 100)));
}

/** @param offered names in a filter call */
export function openScheduling(port: number, nodes: number, offered: number): ChooseNode {
  const [filter, prioritize] = ['/filter', '/prioritize'].map((path) => createClient({ port, path }));
  const orders = Array.from({ length: ORDERS }, (_, seed) => JSON.stringify(offeredNames(nodes, seed, offered)));
  return async (metadata, turn) => {
    const pod = JSON.stringify({ metadata, spec: { containers: [LAUNCHER_CONTAINER] } });
    const bodyOf = (names: string) => `{"Pod":${pod},"Nodes":null,"NodeNames":${names}}`;
    const { NodeNames: passed, Error: error } = (await filter!.ask(bodyOf(orders[turn % ORDERS]!))) as {
      readonly NodeNames: readonly string[] | null;
      readonly Error?: string;
    };
    if (passed === null || passed.length === 0)
      throw new Error(`no node for ${metadata.name}: ${error ?? 'all refused'}`);
    const scores = (await prioritize!.ask(bodyOf(JSON.stringify(passed)))) as { Host: string; Score: number }[];
    // Without scores, the nodes are equal.
    return scores.toSorted((a, b) => b.Score - a.Score)[0]?.Host ?? passed[0]!;
  };
}
