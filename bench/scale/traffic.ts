import { CpuSet } from '../../model/cpu-set.ts';
import { report, type Stage } from '../../test/real/scheduler/stage.ts';
import { vector } from '../../test/support/vectors.ts';
import { LAUNCHER_CONTAINER, nodeName, nodeStatus, offeredNames } from '../scheduler-plugin/nodes.ts';
import { createClient } from '../support/http-load.ts';

/** A pod that waits for a node. */
interface WaitingPod {
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

export const NAMESPACE = 'telco-east';
const VMI_PATH = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances`;
const PODS_PATH = `/api/v1/namespaces/${NAMESPACE}/pods`;
/** Whole cores of a VM. */
const CORES = 5;
const THREAD = 64;

/**
 * Returns a function that plays a number of VMs, as many at a time as there are connections for reviews. The pod of each
 * VM is reviewed, created, given a node by the extender, bound, reported by that node's agent, and started; then the VM
 * is deleted, and the agent reports again.
 */
export function createTraffic({ client }: Stage, nodes: number, reviews: readonly (() => Promise<void>)[]) {
  const vmi = vector<object>('vmi.json');
  const agents = createAgents(nodes, (node, status) => report(client, node, status));
  let next = 0;
  const comesAndGoes = async (turn: number, review: () => Promise<void>, choose: ChooseNode) => {
    const name = `vm-${turn}`;
    await client.create(VMI_PATH, { ...vmi, metadata: { name, namespace: NAMESPACE } });
    await review();
    const { metadata } = (await client.create(PODS_PATH, launcher(name))) as { metadata: { uid: string } };
    const pod = { name, namespace: NAMESPACE, uid: metadata.uid };
    const node = await choose(pod, turn);
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    await client.create(`${PODS_PATH}/${name}/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name },
      target,
    });
    await agents.assign(node, pod.uid);
    await client.patch(`${PODS_PATH}/${name}/status`, 'application/merge-patch+json', { status: { phase: 'Running' } });
    await client.delete(`${PODS_PATH}/${name}?gracePeriodSeconds=0`);
    await client.delete(`${VMI_PATH}/${name}`);
    await agents.release(node, pod.uid);
  };
  return async (vms: number, choose: ChooseNode): Promise<void> => {
    const end = next + vms;
    await Promise.all(
      reviews.map(async (review) => {
        while (next < end) await comesAndGoes(next++, review, choose);
      }),
    );
  };
}

/** No scheduler of the stage has this name: the measurement binds the pod. */
function launcher(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { 'kubevirt.io': 'virt-launcher' } },
    spec: { schedulerName: 'plumbline-scheduler', containers: [LAUNCHER_CONTAINER] },
  };
}

/** What the agents of the nodes report: the CPUs of other pods, and those of VMs. */
function createAgents(nodes: number, write: (node: string, status: ReturnType<typeof nodeStatus>) => Promise<void>) {
  const indices = new Map(Array.from({ length: nodes }, (_, index) => [nodeName(index), index]));
  const owned = new Map<string, Map<string, readonly number[]>>();
  /** The last report of each node: an agent writes one after the other. */
  const last = new Map<string, Promise<void>>();

  const statusOf = (node: string) => {
    const status = nodeStatus(indices.get(node) ?? 0);
    const vms = [...(owned.get(node) ?? [])].map(([podUID, cores]) => ({
      podUID,
      container: LAUNCHER_CONTAINER.name,
      cpus: CpuSet.of(cores.flatMap((core) => [core, core + THREAD])).toString(),
    }));
    return { ...status, assignments: [...status.assignments, ...vms] };
  };
  const reported = (node: string): Promise<void> => {
    const next = (last.get(node) ?? Promise.resolve()).then(() => write(node, statusOf(node)));
    last.set(node, next);
    return next;
  };

  return {
    /** Assigns the first free cores. @throws Error if there are too few, which a kubelet would refuse */
    assign(node: string, uid: string): Promise<void> {
      const { assignments, reserved, cores } = statusOf(node);
      const taken = CpuSet.parse([reserved, ...assignments.map(({ cpus }) => cpus)].join(','));
      const free = cores.flatMap((_, core) => (taken.has(core) ? [] : [core])).slice(0, CORES);
      if (free.length < CORES) throw new Error(`${node} has ${free.length} free cores, and the VM needs ${CORES}`);
      const there = owned.get(node) ?? new Map<string, readonly number[]>();
      owned.set(node, there.set(uid, free));
      return reported(node);
    },
    release(node: string, uid: string): Promise<void> {
      owned.get(node)?.delete(uid);
      return reported(node);
    },
  };
}
