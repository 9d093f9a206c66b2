import { MIGRATION_LABEL } from '../model/launcher/recognize.ts';
import { groupBy } from '../model/lists.ts';
import type { PodShape } from '../model/shapes.ts';
import type { SchedulerFacts, VmFacts } from './facts.ts';
import type { ReportedHost } from './hosts.ts';
import { launcherState } from './launcher.ts';
import {
  dpuFacts,
  type ExplainedMigration,
  type ExplainedNode,
  type ExplainedPod,
  type ExplainedVm,
  type ExplainedVmi,
  millisecondsOf,
  type Occurrence,
  timeOf,
} from './objects.ts';
import { type Launcher, type VmState, vmState } from './state.ts';
import {
  eventFacts,
  instanceFacts,
  isLauncherOf,
  kindOf,
  machineFacts,
  migrationFacts,
  nodeFacts,
  rejectionFacts,
} from './vm-facts.ts';

/** The objects that determine the states of VMs; what is missing could not be read. */
interface VmObjects {
  readonly nodes: readonly ExplainedNode[];
  readonly hosts: readonly ReportedHost[] | undefined;
  readonly silent: ReadonlySet<string> | undefined;
  readonly machines?: readonly ExplainedVm[] | undefined;
  readonly instances: readonly ExplainedVmi[];
  readonly launchers: readonly ExplainedPod[];
  readonly migrations?: readonly ExplainedMigration[] | undefined;
  readonly scheduler?: SchedulerFacts | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Events that matter before a launcher runs. */
  readonly events?: readonly Occurrence[] | undefined;
  /** Events of launchers that kubelets rejected, most of which are deleted. */
  readonly rejections?: readonly Occurrence[] | undefined;
}

export interface Vm {
  readonly namespace: string;
  /** Name of the VM or instance, else of the pod. */
  readonly name: string;
  readonly machine: ExplainedVm | undefined;
  readonly instance: ExplainedVmi | undefined;
  readonly launchers: readonly ExplainedPod[];
  /** As in `plumbline explain`, without checking every node for a launcher that waits. */
  readonly state: VmState;
}

export const vmiOwner = ({ metadata }: Pick<PodShape, 'metadata'>) =>
  metadata.ownerReferences?.find(({ kind, controller }) => controller === true && kind === 'VirtualMachineInstance');

export const timeCreated = ({ metadata }: ExplainedPod) => millisecondsOf(metadata.creationTimestamp);

interface VmRecord extends Pick<Vm, 'namespace' | 'name' | 'machine' | 'instance'>, Pick<VmObjects, 'migrations'> {
  /** Newest first. */
  readonly rejections: readonly Occurrence[];
}

/** The facts about a VM that are the same for all its launchers. @param now milliseconds since 1970 */
export function commonFacts(record: VmRecord, now: number): VmFacts {
  const { namespace, name, machine, instance, migrations, rejections } = record;
  return {
    namespace,
    name,
    kind: kindOf(instance, machine),
    machine: machine && machineFacts(machine, now),
    instance: instance && { ...instanceFacts(instance), hasCpusOfClaim: instance.spec.domain.cpu?.dra !== undefined },
    migration: instance && migrationFacts(instance.status?.migrationState, migrations),
    annotations: instance?.metadata.annotations ?? machine?.spec.template?.metadata?.annotations,
    rejection: rejectionFacts(rejections, now),
    now,
  };
}

export function launcherOf(pod: ExplainedPod, facts: VmFacts): Launcher {
  const { uid = '', labels } = pod.metadata;
  return {
    uid,
    node: pod.spec.nodeName || undefined,
    migration: labels?.[MIGRATION_LABEL],
    created: timeCreated(pod),
    state: launcherState(facts, pod),
  };
}

/** Every VM, every instance without a VM, and every other launcher, with its state. */
export function vmsOf(objects: VmObjects): Vm[] {
  const { scheduler, silent, migrations = [], now, events = [] } = objects;
  const byKey = <T extends Pick<ExplainedVm, 'metadata'>>(list: readonly T[] = []) =>
    new Map(list.map((item) => [`${item.metadata.namespace}/${item.metadata.name}`, item]));
  const machines = byKey(objects.machines);
  const instances = byKey(objects.instances);
  const pods = groupBy(
    objects.launchers,
    (pod) => `${pod.metadata.namespace}/${vmiOwner(pod)?.name ?? pod.metadata.name}`,
  );
  const moves = groupBy(migrations, ({ metadata, spec }) => `${metadata.namespace}/${spec.vmiName}`);
  const newestFirst = (list: readonly Occurrence[]) => [...list].sort((a, b) => timeOf(b) - timeOf(a));
  const latest = newestFirst(events);
  const rejected = newestFirst(objects.rejections ?? []);
  const nodes = new Map(objects.nodes.map((node) => [node.metadata.name ?? '', node]));
  const reports = objects.hosts && new Map(objects.hosts.map((host) => [host.name, host]));

  const nodeFactsOf = (pod: ExplainedPod) => {
    const at = pod.spec.nodeName ?? '';
    if (at === '' || reports === undefined) return undefined;
    return nodeFacts(pod.metadata, dpuFacts(nodes.get(at), pod), reports.get(at), silent?.has(at) === true);
  };
  return [...new Set([...machines.keys(), ...instances.keys(), ...pods.keys()])].map((key): Vm => {
    const [namespace = '', name = ''] = key.split('/', 2);
    const machine = machines.get(key);
    const instance = instances.get(key);
    const podsOfVm = pods.get(key) ?? [];
    const rejections = rejected.filter(
      ({ involvedObject }) => involvedObject.namespace === namespace && isLauncherOf(name, involvedObject.name ?? ''),
    );
    const record = { namespace, name, machine, instance, migrations: moves.get(key), rejections };
    const facts: VmFacts = { ...commonFacts(record, now), scheduler, silent };
    // A launcher of an earlier instance of the VM says nothing about this one.
    const current = podsOfVm.filter((pod) => instance === undefined || vmiOwner(pod)?.uid === instance.metadata.uid);
    const states = current.map((pod) => {
      const about = latest.filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid);
      return launcherOf(pod, { ...facts, node: nodeFactsOf(pod), events: eventFacts(about, pod.metadata.uid) });
    });
    return { namespace, name, machine, instance, launchers: podsOfVm, state: vmState(facts, states) };
  });
}
