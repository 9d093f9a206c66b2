import { countText } from '../model/amounts.ts';
import { few } from '../model/errors.ts';
import { SCHEDULER } from '../model/names.ts';
import type { PodShape } from '../model/shapes.ts';
import { schedulerOf } from './bypasses.ts';
import { type Cause, cause, type NodeGroup, type SchedulerFacts, type SearchFacts, type VmFacts } from './facts.ts';
import { nodeRemedies } from './node-remedies.ts';
import { NO_READY_REPLICA } from './objects.ts';
import { bringSchedulerBack, kubectl, type Remedy, remedy } from './remedies.ts';

const EXTENDER_CALL = /\/filter\b|^extender http/;

export function waitingPod(facts: VmFacts, pod: PodShape): Cause {
  const gates = (pod.spec.schedulingGates ?? []).map(({ name }) => name);
  if (gates.length > 0) {
    const help = remedy('ask-the-gate-keeper', 'the owner of the scheduling gates must remove them');
    return cause('Gated', `it is waiting because of scheduling gates: ${gates.join(', ')}`, help);
  }
  const scheduler = schedulerOf(pod);
  const fault = scheduler === SCHEDULER ? schedulerFault(facts.scheduler) : undefined;
  if (fault !== undefined) return fault;
  const nominated = pod.status?.nominatedNodeName;
  const { search } = facts;
  if (search === undefined && nominated) {
    return cause('Nominated', `nominated to ${nominated}: it waits for resources there`);
  }
  const attempts = pod.status?.conditions?.filter(({ type }) => type === 'PodScheduled') ?? [];
  if (attempts.length === 0) {
    const text = search === undefined ? 'the scheduler has not tried it yet' : searchText(search);
    return cause('NotTried', text, notTried(scheduler));
  }
  if (search !== undefined) return searched(facts, search);
  const { reason, message } = attempts.find(({ status }) => status === 'False') ?? {};
  if (reason === 'SchedulerError' && EXTENDER_CALL.test(message ?? '')) {
    return cause('ExtenderAway', `its call failed: ${message}`, bringSchedulerBack());
  }
  const text = summaryOf(message ?? '') || 'the scheduler found no node and gave no reason';
  return cause('NoNodeFits', withSilent(text, facts.silent));
}

/** Why Plumbline's own scheduler places no pod; undefined if it works, or if that is unknown. */
export function schedulerFault({ away, extenderAway }: SchedulerFacts = {}): Cause | undefined {
  if (away !== undefined) return cause('SchedulerAway', `no scheduler tries it: ${away}`, bringSchedulerBack());
  if (extenderAway === undefined) return undefined;
  const text = `${extenderAway}, and ${SCHEDULER} places no pod without it`;
  return cause('ExtenderAway', text, bringSchedulerBack());
}

/** @param election undefined: unknown @param isReady a replica is ready; undefined: unknown, or another way */
export function schedulerFacts(
  election: SchedulerFacts | undefined,
  isReady: boolean | undefined,
): SchedulerFacts | undefined {
  if (election === undefined || election.away !== undefined || isReady !== false) return election;
  // The extender decides the readiness of the pod. One that leads without it gets no answer.
  return { ...election, extenderAway: `its extender does not answer (${NO_READY_REPLICA})` };
}

/** A reason why no node fits, with the nodes that kube-scheduler cannot know because their agents are silent. */
export function withSilent(text: string, silent: ReadonlySet<string> = new Set()): string {
  const [node] = silent;
  if (node === undefined) return text;
  return `${text}; ${silent.size === 1 ? `the agent on ${node} is silent` : `${silent.size} agents are silent`}`;
}

const RETRY: readonly Remedy[] = [
  remedy('wait', 'wait: kube-scheduler retries it at the next change of a node or pod, and every 5 minutes'),
  remedy(
    'look-at-volumes',
    'read kube-scheduler’s message: this command does not check its own rules, such as volumes, spread and the anti-affinity of other pods',
  ),
];

function searched(facts: VmFacts, search: SearchFacts): Cause {
  const text = searchText(search);
  const { groups } = search;
  const has = (kind: NodeGroup['kind']) => groups.some((group) => group.kind === kind);
  if (has('fits')) return cause('RetryPending', text, ...RETRY);
  const remedies = nodeRemedies(groups, facts);
  if (has('not-predicted')) return cause('RetryPending', text, ...remedies, ...RETRY);
  return cause(isTooLarge(groups) ? 'TooLarge' : 'NoNodeFits', text, ...remedies);
}

/** Groups of nodes that were never meant for the pod; they say nothing about its size. */
export const NEVER_MEANT: readonly NodeGroup['kind'][] = ['not-selected', 'no-such-network', 'tainted'];
const TOO_LARGE: readonly NodeGroup['kind'][] = ['too-large', 'more-than-node', 'larger-than-cells'];

function isTooLarge(groups: readonly NodeGroup[]): boolean {
  const meant = groups.filter(({ kind }) => !NEVER_MEANT.includes(kind));
  return meant.length > 0 && meant.every(({ kind }) => TOO_LARGE.includes(kind));
}

function notTried(scheduler: string): Remedy {
  const text = `check the scheduler: ${scheduler} has not tried it yet`;
  const events = kubectl('-n', 'kube-system', 'get', 'pods');
  return scheduler === SCHEDULER ? bringSchedulerBack() : remedy('check-other-scheduler', text, events);
}

const every = (nodes: number, reason: string) => `${nodes === 1 ? 'the only node' : `all ${nodes} nodes`}: ${reason}`;

const noneOf = (nodes: number | string, closest: string) =>
  `none of ${nodes} nodes can take it; closest match: ${closest}`;

/** Starts of the reasons of kube-scheduler's own filters. All others are the extender's. */
const KUBE_SCHEDULER_REASON = /^(Insufficient |Too many pods|node\(s\) )/;

/** kube-scheduler's message, marked as its own; the extender's reason is the closest match, else the most frequent. */
function summaryOf(message: string): string {
  const [, nodes, list = ''] =
    /^0\/(\d+) nodes are available: (.*?)\.?(?: no new claims .*| preemption: .*)?$/s.exec(message) ?? [];
  const countOf = (entry: string) => Number.parseInt(entry, 10);
  const entries = list.split(/, (?=\d+ )/).toSorted((a, b) => countOf(b) - countOf(a));
  const reasons = entries.map((entry) => entry.replace(/^\d+ /, ''));
  const closest = reasons.find((reason) => !KUBE_SCHEDULER_REASON.test(reason)) ?? reasons[0];
  if (nodes === undefined || nodes === '0' || !closest) return message;
  return `kube-scheduler: ${reasons.length > 1 ? noneOf(nodes, closest) : every(Number(nodes), closest)}`;
}

/** Reasons in one line, and characters of each. */
const MAX_DETAILS = 3;
const MAX_DETAIL_CHARACTERS = 256;

function searchText({ groups, nodes }: SearchFacts): string {
  if (nodes === 0) return 'the cluster has no nodes';
  const countOf = (kind: NodeGroup['kind']) =>
    groups.reduce((sum, group) => sum + (group.kind === kind ? group.count : 0), 0);
  const [fits, unknown] = [countOf('fits'), countOf('not-predicted')];
  if (fits > 0) return `it is pending although ${fits} of ${countText(nodes, 'node')} could run it`;
  if (unknown > 0) {
    const details = groups.filter(({ kind }) => kind === 'not-predicted').map(({ detail }) => detail);
    const why = few(details, MAX_DETAILS, MAX_DETAIL_CHARACTERS).join('; ');
    return `no node is predicted to take it; ${unknown} of ${countText(nodes, 'node')} cannot be predicted: ${why}`;
  }
  const text = groups[0]?.text ?? '';
  return groups.length === 1 ? every(nodes, text) : noneOf(nodes, text);
}
