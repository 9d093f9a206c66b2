import { hostsOf } from '../../diagnosis/hosts.ts';
import { launcherStates } from '../../diagnosis/launcher-states.ts';
import { deadDpu, type ExplainedPod, hasReadyReplica, NO_READY_REPLICA, timeOf } from '../../diagnosis/objects.ts';
import { type Stage, VERDICTS, WAITING_STAGES } from '../../diagnosis/reasons.ts';
import { type VmState, vmState } from '../../diagnosis/state.ts';
import { instanceFacts, isVerified, machineFacts } from '../../diagnosis/vm-facts.ts';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { byName, groupBy } from '../../model/lists.ts';
import { NAMESPACE, PREDICTION_DIFFERS } from '../../model/names.ts';
import { tolerant } from '../doctor/facts/facts.ts';
import { deployment } from '../doctor/facts/objects.ts';
import { theOneThatMatters } from '../explain/subject.ts';
import { readScheduler } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { notFound } from '../support/exit-status.ts';
import { eventsOf, INSTANCES, LAUNCHERS, MACHINES, NODES, within } from '../support/kinds.ts';
import { readAgentLeases, readAll, readIfAllowed, readTopologies, undefinedIfForbidden } from '../support/lists.ts';

export interface WaitingVm {
  readonly namespace: string;
  readonly name: string;
  readonly state: Stage;
  readonly verdict: VmState['verdict'];
  readonly reason: VmState['reason'];
  readonly text: string;
  readonly node: string | undefined;
  readonly ageSeconds: number | undefined;
}

export type ClusterStatus = Awaited<ReturnType<typeof readStatus>>;

/** Older Events say nothing about the current state. */
const RECENT_MILLISECONDS = 3600 * 1000;

/** @param namespace undefined: all @param now milliseconds since 1970 @throws CliError if absent; KubeError */
export async function readStatus(cluster: Pick<ClusterAccess, 'client'>, namespace: string | undefined, now: number) {
  const facts = await readStatusFacts(cluster.client, namespace, now);
  const { topologies, nodes, agents, machines, differences, deployments } = facts;
  if (namespace !== undefined && facts.launched.size === 0 && (machines ?? []).length === 0)
    await assertNamespace(cluster.client, namespace);
  const silent = [...(agents.value?.silent ?? [])].filter((name) =>
    topologies.some((one) => one.metadata.name === name),
  );
  return {
    /** As in the console: broken ones first, then those that wait longest. */
    waiting: [...waitingLaunchers(facts, now), ...waitingMachines(facts, now)].sort(
      (a, b) =>
        VERDICTS.indexOf(b.verdict) - VERDICTS.indexOf(a.verdict) ||
        (b.ageSeconds ?? -1) - (a.ageSeconds ?? -1) ||
        a.namespace.localeCompare(b.namespace) ||
        byName<WaitingVm>(({ name }) => name)(a, b),
    ),
    notReady: (deployments ?? [])
      .filter((one) => !hasReadyReplica(one))
      .map(({ metadata: { name = '' } }) => ({ deployment: name, text: NO_READY_REPLICA })),
    silentAgents: silent.sort().map((node) => ({ node, silentSeconds: Math.round(agents.value?.ages.get(node) ?? 0) })),
    deadDpus: (nodes ?? []).flatMap((node) => {
      const text = deadDpu(node);
      return text === undefined ? [] : [{ node: node.metadata.name ?? '', text }];
    }),
    mispredictions: (differences ?? [])
      .filter((event) => isVerified(event) && now - timeOf(event) < RECENT_MILLISECONDS)
      .filter(({ involvedObject }) => namespace === undefined || involvedObject.namespace === namespace)
      .map(({ involvedObject: { namespace: where, name }, message }) => ({
        pod: `${where}/${name}`,
        text: message ?? '',
      })),
    notes: [
      ...(deployments === undefined
        ? [`you may not read Deployments of ${NAMESPACE}: those that are not ready are not shown`]
        : []),
      ...(nodes === undefined ? ['you may not read nodes: dead DPUs are not shown'] : []),
      ...(agents.missing === 'forbidden' ? ['you may not read the agents’ Leases: silent agents are not shown'] : []),
      ...(machines === undefined
        ? ['VMs are not readable (no permission, or KubeVirt is not installed): those without a launcher are not shown']
        : []),
      ...(differences === undefined
        ? ['you may not read Events of all namespaces: wrong predictions are not shown']
        : []),
    ],
  };
}

/** @throws CliError if the namespace does not exist; KubeError */
async function assertNamespace(client: KubeClient, name: string): Promise<void> {
  const namespace = client.get(`/api/v1/namespaces/${encodeURIComponent(name)}`);
  await namespace.catch((error: unknown) => {
    if (isNotFound(error)) throw notFound(`there is no namespace ${name}`);
    undefinedIfForbidden(error);
  });
}

type StatusFacts = Awaited<ReturnType<typeof readStatusFacts>>;

async function readStatusFacts(client: KubeClient, namespace: string | undefined, now: number) {
  const events = (reason: string) => readIfAllowed(client, ...eventsOf(reason));
  const launcherEvents = Promise.all(['CannotEvict', 'FailedToStart', 'EvictedBeforeStart'].map(events));
  const [topologies, nodes, agents, pods, machines, instances, cannotEvict, differences, scheduler, deployments] =
    await Promise.all([
      readTopologies(client),
      readIfAllowed(client, ...NODES),
      tolerant(readAgentLeases(client, now)),
      readAll(client, ...within(LAUNCHERS, namespace)),
      readIfAllowed(client, ...within(MACHINES, namespace)),
      tolerant(readIfAllowed(client, ...within(INSTANCES, namespace))),
      tolerant(launcherEvents.then((lists) => lists.flatMap((list) => list ?? []))),
      events(PREDICTION_DIFFERS),
      readScheduler(client, now),
      readIfAllowed(client, `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, deployment),
    ]);
  const launched = groupBy(pods, vmOf);
  const state = { instances, cannotEvict, differences, scheduler, deployments };
  return { topologies, nodes, agents, machines, launched, ...state };
}

function waitingLaunchers(facts: StatusFacts, now: number): WaitingVm[] {
  const relevant = [...facts.launched].flatMap(([vm, pods]) => {
    const pod = theOneThatMatters(pods);
    return pod === undefined ? [] : [{ vm, pod }];
  });
  const { topologies, nodes, agents, instances, cannotEvict, scheduler } = facts;
  const states = launcherStates(
    {
      nodes: nodes ?? [],
      hosts: hostsOf(topologies).hosts,
      silent: agents.value?.silent,
      instances: instances.value ?? [],
      scheduler,
      now,
      events: cannotEvict.value ?? [],
    },
    relevant.map(({ pod }) => pod),
  );
  return relevant.flatMap(({ vm, pod }) => {
    const state = states.get(pod);
    return state === undefined
      ? []
      : waitingVm(vm, state, { created: pod.metadata.creationTimestamp, now }, pod.spec.nodeName);
  });
}

function waitingMachines({ machines, instances, launched }: StatusFacts, now: number): WaitingVm[] {
  const vmis = new Map((instances.value ?? []).map((vmi) => [`${vmi.metadata.namespace}/${vmi.metadata.name}`, vmi]));
  return (machines ?? []).flatMap((vm) => {
    const { namespace = '', name = '', creationTimestamp } = vm.metadata;
    const key = `${namespace}/${name}`;
    const machine = machineFacts(vm, now);
    if (!machine.shouldRun || launched.has(key)) return [];
    const vmi = vmis.get(key);
    const state = vmState({ namespace, name, kind: 'vm', machine, instance: vmi && instanceFacts(vmi) });
    return waitingVm(key, state, { created: creationTimestamp, now });
  });
}

interface Since {
  readonly created: string | undefined;
  readonly now: number;
}

function waitingVm(
  vm: string,
  { state, verdict, reason, text }: VmState,
  { created, now }: Since,
  node = '',
): WaitingVm[] {
  const isPaused = state === 'paused' && verdict !== 'stopped';
  if (!isPaused && !WAITING_STAGES.includes(state)) return [];
  const [namespace = '', name = ''] = vm.split('/', 2);
  const since = Date.parse(created ?? '');
  const ageSeconds = Number.isNaN(since) ? undefined : Math.max(0, Math.round((now - since) / 1000));
  return [{ namespace, name, state, verdict, reason, text, node: node || undefined, ageSeconds }];
}

function vmOf({ metadata }: ExplainedPod): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return `${metadata.namespace}/${owner?.name ?? metadata.name}`;
}
