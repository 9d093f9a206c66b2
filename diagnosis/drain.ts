import { CpuSet, unionOf } from '../model/cpu-set.ts';
import { CPUS_FROM_CLAIM } from '../model/launcher/annotation.ts';
import { findCondition, type NodeGroup } from './facts.ts';
import type { Hosts } from './hosts.ts';
import { nodeRemedies } from './node-remedies.ts';
import type { ExplainedPod } from './objects.ts';
import { type Leaving, type NewPlace, type Relocation, type Remaining, relocate } from './relocation.ts';
import { type Named, patchOf, type Remedy, remedy, virtctlFor } from './remedies.ts';
import type { JudgedTerm } from './scheduler-view.ts';
import { kindOf, notMigratable } from './vm-facts.ts';
import type { Vm } from './vms.ts';

/**
 * What a drain does with a VM: `migrates`; `restarts` on another node, without a migration; `stops`, and nothing starts
 * it again; `blocks`: the drain does not end while the VM is there; `unknown`: its instance cannot be read.
 */
type DrainOutcome = 'migrates' | 'restarts' | 'stops' | 'blocks' | 'unknown';

export interface DrainedVm {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Those that its node reports. */
  readonly cpus: CpuSet;
  readonly outcome: DrainOutcome;
  /** Undefined: no node can take it, or it does not go elsewhere. */
  readonly place: NewPlace | undefined;
  /** Why it does not migrate, or has no place; '' for a VM that migrates. */
  readonly text: string;
  readonly remedies: readonly Remedy[];
}

export interface Drain {
  /** In an order in which each finds its place; those without one last. */
  readonly vms: readonly DrainedVm[];
  /** Whether another order leaves VMs without a place. */
  readonly orderMatters: boolean;
}

interface DrainInput extends Remaining {
  /** The VMs whose guests run on the nodes that are drained. */
  readonly vms: readonly Vm[];
  /** `evictionStrategy` of KubeVirt's configuration, for VMs without their own. */
  readonly defaultStrategy: string | undefined;
  termsOf(pod: ExplainedPod): Promise<readonly JudgedTerm[]>;
}

/** What a drain would do, VM by VM. The VMs that migrate go first, as the others need not move for them. */
export async function planDrain({ vms, defaultStrategy, termsOf, ...remaining }: DrainInput): Promise<Drain> {
  const plans = await Promise.all(vms.map((vm) => planOf(vm, defaultStrategy, termsOf)));
  const leaving = (migrates: boolean) =>
    plans.flatMap(({ outcome, leaves }) => (leaves && (outcome === 'migrates') === migrates ? [leaves] : []));
  const relocation = await relocate([leaving(true), leaving(false)], remaining);
  const relocated = [...relocation.places.keys()];
  const rank = ({ leaves }: Plan) => {
    const index = leaves === undefined ? -1 : relocated.indexOf(leaves);
    return index < 0 ? relocated.length : index;
  };
  const ranked = plans.toSorted((a, b) => rank(a) - rank(b));
  return {
    vms: ranked.map((plan) => drainedVm(plan, remaining.reported, relocation)),
    orderMatters: relocation.orderMatters,
  };
}

interface Fate {
  readonly outcome: DrainOutcome;
  readonly why: string;
  readonly remedies: readonly Remedy[];
}

interface Plan extends Fate {
  readonly vm: Vm;
  readonly launcher: ExplainedPod;
  /** Undefined: it needs no other place. */
  readonly leaves?: Leaving | undefined;
  /** Of a migration that is under way. */
  readonly target?: string | undefined;
}

const RESTARTING = ['Always', 'RerunOnFailure'];

async function planOf(vm: Vm, defaultStrategy: string | undefined, termsOf: DrainInput['termsOf']): Promise<Plan> {
  const launcher = vm.launchers.find(({ metadata }) => metadata.uid === vm.state.launcher) ?? vm.launchers[0]!;
  const decided = { vm, launcher, ...fateOf(vm, defaultStrategy) };
  if (decided.outcome !== 'migrates' && decided.outcome !== 'restarts') return decided;
  const { state } = vm;
  const target = state.state === 'migrating' ? state.migration.target : undefined;
  if (target !== undefined) return { ...decided, target };
  const { metadata } = launcher;
  const { nodeName: _, ...spec } = launcher.spec;
  const pod: ExplainedPod = { metadata: { ...metadata, uid: `${metadata.uid}/again` }, spec, status: undefined };
  // A launcher that starts again does so without the one that was there.
  return { ...decided, leaves: { pod, replaces: metadata.uid, terms: await termsOf(launcher) } };
}

const stopFirst = (vm: Named) =>
  remedy('stop-first', 'stop it at a suitable time, before the drain', ...virtctlFor(vm, 'stop'));
const migrateFirst = (vm: Named) =>
  remedy('migrate-first', 'cordon the node and migrate it, before the drain', ...virtctlFor(vm, 'migrate'));
const setStrategy = (vm: Named) =>
  remedy(
    'set-eviction-strategy',
    'from its next start on, have drains migrate it',
    ...patchOf(vm, { spec: { template: { spec: { evictionStrategy: 'LiveMigrate' } } } }),
  );

/** By KubeVirt's admission of an eviction: pod-eviction-admitter.go. */
function fateOf(vm: Vm, defaultStrategy: string | undefined): Fate {
  const { instance } = vm;
  if (instance === undefined) {
    return { outcome: 'unknown', why: 'its VirtualMachineInstance cannot be read', remedies: [] };
  }
  const named: Named = { namespace: vm.namespace, name: vm.name, kind: kindOf(instance, vm.machine) };
  const strategy = instance.spec.evictionStrategy ?? defaultStrategy ?? 'None';
  const conditions = instance.status?.conditions ?? [];
  const isMigratable = findCondition(conditions, 'LiveMigratable') !== undefined;
  const hasClaim = instance.spec.domain.cpu?.dra !== undefined;
  const because = hasClaim ? CPUS_FROM_CLAIM : (notMigratable(conditions) ?? 'it does not run yet');
  const cannot = `KubeVirt cannot migrate it${because === '' ? '' : `: ${because}`}`;
  const migrates = strategy === 'LiveMigrate' || strategy === 'LiveMigrateIfPossible';
  if (migrates && isMigratable) return { outcome: 'migrates', why: '', remedies: [] };
  if (strategy === 'LiveMigrate') return { outcome: 'blocks', why: cannot, remedies: [stopFirst(named)] };
  if (strategy === 'External') {
    const why = 'its evictionStrategy External leaves it to another controller, for which the drain waits';
    return { outcome: 'blocks', why, remedies: isMigratable ? [migrateFirst(named)] : [stopFirst(named)] };
  }
  const why = migrates ? cannot : `its evictionStrategy is ${strategy}: the drain shuts it down`;
  const starts = RESTARTING.includes(vm.machine?.spec.runStrategy ?? '') || vm.machine?.spec.running === true;
  const remedies = isMigratable ? [migrateFirst(named), setStrategy(named)] : [stopFirst(named)];
  return { outcome: starts ? 'restarts' : 'stops', why, remedies };
}

function drainedVm(plan: Plan, reported: Hosts, { places, refusals }: Relocation): DrainedVm {
  const { vm, launcher, outcome, why, remedies, leaves, target } = plan;
  const { namespace, name, machine, instance } = vm;
  const node = launcher.spec.nodeName ?? '';
  const there = vm.launchers.find((pod) => target !== undefined && pod.spec.nodeName === target);
  const underWay = there && {
    node: target ?? '',
    cpus: reportedCpus(reported, target, there),
    numaNodes: [],
    equal: 1,
  };
  const place = leaves === undefined ? underWay : places.get(leaves);
  const facts = { namespace, name, node, cpus: reportedCpus(reported, node, launcher), place };
  const groups = leaves && refusals.get(leaves);
  if (groups === undefined) return { ...facts, outcome, text: why, remedies };
  const full = groups.length === 0 ? 'no node remains' : `no node can take it: ${groupsText(groups)}`;
  const waiting = { namespace, name, kind: kindOf(instance, machine), pod: launcher };
  return {
    ...facts,
    outcome: outcome === 'migrates' ? 'blocks' : 'stops',
    text: [why, full].filter((text) => text !== '').join('; '),
    remedies: [...remedies, ...nodeRemedies(groups, waiting)],
  };
}

function reportedCpus({ hosts }: Hosts, node: string | undefined, { metadata }: ExplainedPod): CpuSet {
  const assignments = hosts.find(({ name }) => name === node)?.status.assignments ?? [];
  return unionOf(assignments.filter(({ podUID }) => podUID === metadata.uid).map(({ cpus }) => CpuSet.parse(cpus)));
}

const MAX_NODE_GROUPS = 3;

function groupsText(groups: readonly NodeGroup[]): string {
  const texts = groups.slice(0, MAX_NODE_GROUPS).map(({ nodes: [first], count, text }) => {
    return `${text} (${count === 1 ? first : `${count} nodes, such as ${first}`})`;
  });
  return texts.join('; ') + (groups.length > MAX_NODE_GROUPS ? '; …' : '');
}
