import { hostsOf } from '../../diagnosis/hosts.ts';
import {
  deadDpu,
  dpuRestart,
  type ExplainedNode,
  hasReadyReplica,
  NO_READY_REPLICA,
  timeOf,
} from '../../diagnosis/objects.ts';
import { VERDICTS } from '../../diagnosis/reasons.ts';
import type { Stage, VmState } from '../../diagnosis/state.ts';
import { isVerified } from '../../diagnosis/vm-facts.ts';
import { type Vm, vmsOf } from '../../diagnosis/vms.ts';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { REJECTIONS } from '../../model/kubelet/provider.ts';
import { byName } from '../../model/lists.ts';
import { NAMESPACE, PREDICTION_DIFFERS, WEBHOOK } from '../../model/names.ts';
import { readScheduler } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { notFound } from '../support/exit-status.ts';
import { DEPLOYMENTS, eventsOf, INSTANCES, LAUNCHERS, MACHINES, MIGRATIONS, NODES, within } from '../support/kinds.ts';
import {
  readAgentLeases,
  readAll,
  readIfAllowed,
  readTopologies,
  readWebhooksOff,
  settled,
  undefinedIfForbidden,
} from '../support/lists.ts';

/** A VM that waits, or runs with something to act upon. */
export interface ListedVm {
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
  const { topologies, nodes, agents, machines, instances, launchers, migrations, ...facts } = await readStatusFacts(
    cluster.client,
    namespace,
    now,
  );
  const { scheduler, cannotEvict, rejections, differences, deployments, webhooksOff } = facts;
  if (namespace !== undefined && launchers.length === 0 && (machines ?? []).length === 0)
    await assertNamespace(cluster.client, namespace);
  const silent = [...(agents?.silent ?? [])].filter((name) =>
    topologies.some((topology) => topology.metadata.name === name),
  );
  const { hosts } = hostsOf(topologies);
  const vms = vmsOf({
    nodes: nodes ?? [],
    hosts,
    silent: agents?.silent,
    machines,
    instances: instances ?? [],
    launchers,
    migrations,
    scheduler,
    now,
    events: cannotEvict,
    rejections,
  });
  const list = (filter: (vm: Vm) => boolean) =>
    vms
      .filter(filter)
      .map((vm) => listed(vm, now))
      .sort(byUrgency);
  return {
    waiting: list(doesNotRun),
    notAsRequested: list(isNotAsRequested),
    migrations: list(hasMigrationThatWaits),
    notReady: (deployments ?? [])
      .filter((deployment) => !hasReadyReplica(deployment))
      .map(({ metadata: { name = '' } }) => ({ deployment: name, text: NO_READY_REPLICA })),
    silentAgents: silent.sort().map((node) => ({ node, silentSeconds: Math.round(agents?.ages.get(node) ?? 0) })),
    deadDpus: (nodes ?? []).flatMap((node) => textOfNode(node, deadDpu(node))),
    restartedDpus: (nodes ?? []).flatMap((node) => textOfNode(node, dpuRestart(node)?.text)),
    falseConditions: topologies.flatMap(({ metadata, status }) =>
      (status?.conditions ?? [])
        .filter((condition) => condition.status === 'False')
        .map(({ type, message }) => ({ node: metadata.name ?? '', condition: type, text: message })),
    ),
    webhooksOff: webhooksOff === undefined ? [] : [{ webhook: WEBHOOK, text: webhooksOff }],
    mispredictions: (differences ?? [])
      .filter((event) => isVerified(event) && now - timeOf(event) < RECENT_MILLISECONDS)
      .filter(({ involvedObject }) => namespace === undefined || involvedObject.namespace === namespace)
      .map(({ involvedObject: { namespace: where, name }, message }) => ({
        pod: `${where}/${name}`,
        text: message ?? '',
      })),
    notes: [
      deployments === undefined &&
        `you may not read Deployments of ${NAMESPACE}: those that are not ready are not shown`,
      nodes === undefined && 'you may not read nodes: dead and restarted DPUs are not shown',
      agents === undefined && 'you may not read the agents’ Leases: silent agents are not shown',
      machines === undefined &&
        'VMs are not readable (no permission, or KubeVirt is not installed): those without a launcher are not shown',
      differences === undefined && 'you may not read Events of all namespaces: wrong predictions are not shown',
    ].filter((note) => note !== false),
  };
}

function textOfNode({ metadata: { name = '' } }: ExplainedNode, text: string | undefined) {
  return text === undefined ? [] : [{ node: name, text }];
}

/** @throws CliError if the namespace does not exist; KubeError */
async function assertNamespace(client: KubeClient, name: string): Promise<void> {
  const namespace = client.get(`/api/v1/namespaces/${encodeURIComponent(name)}`);
  await namespace.catch((error: unknown) => {
    if (isNotFound(error)) throw notFound(`there is no namespace ${name}`);
    undefinedIfForbidden(error);
  });
}

async function readStatusFacts(client: KubeClient, namespace: string | undefined, now: number) {
  const events = (reason: string) => readIfAllowed(client, ...eventsOf(reason));
  const all = async (reasons: readonly string[]) =>
    (await Promise.all(reasons.map(events))).flatMap((list) => list ?? []);
  return settled({
    topologies: readTopologies(client),
    nodes: readIfAllowed(client, ...NODES),
    agents: readAgentLeases(client, now),
    launchers: readAll(client, ...within(LAUNCHERS, namespace)),
    machines: readIfAllowed(client, ...within(MACHINES, namespace)),
    instances: readIfAllowed(client, ...within(INSTANCES, namespace)),
    migrations: readIfAllowed(client, ...within(MIGRATIONS, namespace)),
    cannotEvict: all(['CannotEvict', 'FailedToStart', 'EvictedBeforeStart']),
    rejections: all(REJECTIONS),
    webhooksOff: readWebhooksOff(client),
    differences: events(PREDICTION_DIFFERS),
    scheduler: readScheduler(client, now),
    deployments: readIfAllowed(client, ...DEPLOYMENTS),
  });
}

/** As in the console: broken ones first, then those that wait longest. */
function byUrgency(a: ListedVm, b: ListedVm): number {
  return (
    VERDICTS.indexOf(b.verdict) - VERDICTS.indexOf(a.verdict) ||
    (b.ageSeconds ?? -1) - (a.ageSeconds ?? -1) ||
    a.namespace.localeCompare(b.namespace) ||
    byName<ListedVm>(({ name }) => name)(a, b)
  );
}

function listed({ namespace, name, machine, instance, launchers, state }: Vm, now: number): ListedVm {
  const { verdict, reason, text } = state;
  const launcher = launchers.find(({ metadata }) => metadata.uid === state.launcher);
  const { creationTimestamp } = (launcher ?? instance ?? machine)?.metadata ?? {};
  const since = Date.parse(creationTimestamp ?? '');
  const ageSeconds = Number.isNaN(since) ? undefined : Math.max(0, Math.round((now - since) / 1000));
  const node = launcher?.spec.nodeName || undefined;
  return { namespace, name, state: state.state, verdict, reason, text, node, ageSeconds };
}

const DOES_NOT_RUN: readonly Stage[] = ['waiting', 'starting', 'failed'];

/** Also if Plumbline keeps its guest paused. */
function doesNotRun({ state: { state, verdict } }: Vm): boolean {
  return DOES_NOT_RUN.includes(state) || (state === 'paused' && verdict !== 'stopped');
}

function isNotAsRequested({ state }: Vm): boolean {
  return state.state === 'not-as-requested' || (state.state === 'migrating' && state.faults.length > 0);
}

function hasMigrationThatWaits(vm: Vm): boolean {
  return vm.state.reason === 'MigrationWaits' && !isNotAsRequested(vm);
}
