import type { Cause, InstanceFacts, MigrationFacts, VmFacts } from './facts.ts';
import { failedMigration, type MigrationState, migrationCause, pendingChanges } from './migration.ts';
import { withoutLauncher } from './no-launcher.ts';
import { REASONS, type Reason, type Verdict, worst } from './reasons.ts';
import { migrates, type Remedy } from './remedies.ts';

/**
 * The life of a VM, as every output of Plumbline tells it. A VM is `waiting` until its launcher has a node, `starting`
 * until its guest runs, then `running` or `not-as-requested`, at times `migrating` or `paused`, and at last `stopping`.
 */
type Life =
  | { readonly state: 'stopped' | 'starting' | 'paused' | 'running' | 'stopping' | 'failed' }
  | { readonly state: 'waiting'; readonly for: 'launcher' | 'gates' | 'node' }
  /** It runs, without what these causes name. */
  | { readonly state: 'not-as-requested'; readonly faults: readonly Cause[] }
  | { readonly state: 'migrating'; readonly migration: MigrationState; readonly faults: readonly Cause[] };

export type VmState = Life & {
  readonly verdict: Verdict;
  /** Of the most important cause, as the text. */
  readonly reason: Reason;
  readonly text: string;
  /** The other causes. */
  readonly causes: readonly Cause[];
  readonly remedies: readonly Remedy[];
  /** The uid of the launcher in which the guest runs, or is to run. */
  readonly launcher?: string | undefined;
};

export type Stage = VmState['state'];

/** The state of one launcher by itself. */
export interface LauncherState {
  readonly life:
    | { readonly state: Exclude<Stage, 'waiting' | 'not-as-requested' | 'migrating'> }
    | Extract<Life, { readonly state: 'waiting' }>;
  /** At least one; the first of equally bad ones is the most important. */
  readonly causes: readonly Cause[];
}

/** One of the launchers of a VM. */
export interface Launcher {
  readonly uid: string;
  readonly node: string | undefined;
  /** The uid of the migration that created it. */
  readonly migration: string | undefined;
  /** Milliseconds since 1970. */
  readonly created: number;
  readonly state: LauncherState;
}

/** The state of a VM: the one answer of status, explain, top, verify, doctor and the console. */
export function vmState(facts: VmFacts, launchers: readonly Launcher[]): VmState {
  const { instance } = facts;
  const guest = guestLauncher(instance, launchers);
  if (guest === undefined) return stateWithoutLauncher(facts);
  const { uid: launcher, node: source, state } = guest;
  if (instance?.deleting === true && isLive(guest)) return { ...concluded(deleting(source)), launcher };
  if (source === undefined || !hasGuest(guest)) return { ...concluded(state), launcher };
  const causes = [...state.causes, ...pendingChanges(facts)];
  const target = targetLauncher(facts.migration, guest, launchers);
  const migration = hasArrived(facts.migration, guest)
    ? postCopy(facts.migration, guest, launchers)
    : migrationState(facts, source, target);
  if (migration !== undefined) return { ...migrating(facts, migration, target, causes), launcher };
  return { ...concluded({ life: state.life, causes: [...causes, ...failedMigration(facts, source)] }), launcher };
}

/** A running VM with a cause that is not `ok` does not run as requested. */
export function concluded({ life, causes }: LauncherState): VmState {
  const main = worst(causes)!;
  const others = causes.filter((cause) => cause !== main);
  const faults = faultsAmong(causes);
  const isDegraded = life.state === 'running' && faults.length > 0;
  const { reason, text } = main;
  return {
    ...(isDegraded ? { state: 'not-as-requested', faults } : life),
    verdict: verdictOf(main),
    reason,
    text,
    causes: others,
    remedies: remediesOf([main, ...others]),
  };
}

function verdictOf({ reason }: Cause): Verdict {
  return REASONS[reason].verdict;
}

function faultsAmong(causes: readonly Cause[]): Cause[] {
  return causes.filter((cause) => ['waiting', 'degraded', 'broken'].includes(verdictOf(cause)));
}

/** Each remedy once. */
function remediesOf(causes: readonly Cause[]): Remedy[] {
  const remedies = causes.flatMap((cause) => cause.remedies);
  return [...new Map(remedies.map((remedy) => [`${remedy.id} ${remedy.text}`, remedy])).values()];
}

function hasGuest({ state: { life } }: Launcher): boolean {
  return life.state === 'running' || life.state === 'paused';
}

function isLive({ state: { life } }: Launcher): boolean {
  return life.state !== 'stopped' && life.state !== 'failed';
}

function isStaying(launcher: Launcher): boolean {
  return isLive(launcher) && launcher.state.life.state !== 'stopping';
}

/** During a migration the guest runs on the instance's node, until KubeVirt names the target there. */
function guestLauncher(instance: InstanceFacts | undefined, launchers: readonly Launcher[]): Launcher | undefined {
  const newest = [...launchers].sort((a, b) => b.created - a.created);
  const live = newest.filter(isLive);
  const staying = live.filter(isStaying);
  const isThere = ({ node }: Launcher) => instance?.node !== undefined && node === instance.node;
  const there = staying.find(isThere) ?? live.find(isThere);
  // Without the instance's node: of two that run, the older one is the source.
  return there ?? staying.findLast(hasGuest) ?? staying[0] ?? live[0] ?? newest[0];
}

const ENDED: readonly MigrationFacts['progress'][] = ['succeeded', 'failed', 'cancelled'];
const isActive = (migration: MigrationFacts | undefined): migration is MigrationFacts =>
  migration !== undefined && !ENDED.includes(migration.progress);

/** The launcher of a current migration. A label of an earlier migration stays on the launcher that it created. */
function targetLauncher(
  migration: MigrationFacts | undefined,
  guest: Launcher,
  launchers: readonly Launcher[],
): Launcher | undefined {
  const labelled = launchers.filter((launcher) => launcher !== guest && launcher.migration !== undefined);
  if (isActive(migration) && migration.uid !== undefined) {
    return labelled.find((launcher) => launcher.migration === migration.uid);
  }
  return labelled.find(
    (launcher) => launcher.migration !== migration?.uid && launcher.created >= guest.created && isStaying(launcher),
  );
}

/** KubeVirt has handed the guest over to the target; it records the end of the migration some seconds later. */
function hasArrived(migration: MigrationFacts | undefined, { migration: uid }: Launcher): migration is MigrationFacts {
  return isActive(migration) && uid !== undefined && uid === migration.uid;
}

/** A guest that has arrived runs there like any other, unless it still fetches its memory. */
function postCopy(
  { progress, name }: MigrationFacts,
  guest: Launcher,
  launchers: readonly Launcher[],
): MigrationState | undefined {
  const source = launchers.find((one) => one !== guest && one.node !== undefined)?.node;
  if (progress !== 'post-copy' || source === undefined) return undefined;
  return { phase: progress, source, target: guest.node, name };
}

function migrationState(
  { migration, instance }: VmFacts,
  source: string,
  target: Launcher | undefined,
): MigrationState | undefined {
  const hasFailed = migration?.progress === 'failed';
  if (!isActive(migration) && target === undefined) {
    if (instance?.evacuatedFrom !== source) return undefined;
    return { phase: hasFailed ? 'retrying' : 'requested', source };
  }
  const { progress = 'pending', name } = isActive(migration) ? migration : {};
  const commonFields = { source, target: target?.node, name, launcher: target?.uid };
  if (progress !== 'pending') return { phase: progress as 'copying' | 'post-copy' | 'cancelling', ...commonFields };
  if (target === undefined) return { phase: 'pending', ...commonFields };
  const { node } = target;
  const cause = worst(target.state.causes)!;
  const stands = hasGuest(target) || cause.reason === 'Starting';
  return { phase: node === undefined ? 'scheduling' : 'preparing', ...commonFields, ...(!stands && { waits: cause }) };
}

/** What a target may lack before the guest is there, and does not as soon as it is. */
const UNTIL_HANDOVER: readonly Reason[] = [
  'MaskNotApplied',
  'MaskNotReported',
  'NotReported',
  'PinningNotReported',
  'RestartRequired',
];

function migrating(
  facts: VmFacts,
  migration: MigrationState,
  target: Launcher | undefined,
  sourceCauses: readonly Cause[],
): VmState {
  const elsewhere = target !== undefined && hasGuest(target) ? faultsAmong(target.state.causes) : [];
  const there = elsewhere
    .filter(({ reason }) => !UNTIL_HANDOVER.includes(reason))
    .map((cause) => ({ ...cause, text: `on its target: ${cause.text}` }));
  const main = migrationCause(facts, migration);
  const causes = [...sourceCauses, ...there];
  const faults = faultsAmong(causes);
  const verdict = verdictOf(worst([main, ...causes])!);
  const { reason, text } = main;
  return {
    state: 'migrating',
    migration,
    faults,
    verdict,
    reason,
    text,
    causes,
    remedies: remediesOf([main, ...causes]).filter((remedy) => !migrates(remedy)),
  };
}

function deleting(node: string | undefined): LauncherState {
  const text = `it is being deleted${node === undefined ? '' : ` on ${node}`}`;
  return { life: { state: 'stopping' }, causes: [{ reason: 'Deleting', text, remedies: [] }] };
}

const FAILED: readonly Reason[] = [
  'UnalignedRejected',
  'UnpaddedRejected',
  'CoresTaken',
  'TopologyRejected',
  'AdmissionRejected',
  'Failed',
];

function stateWithoutLauncher(facts: VmFacts): VmState {
  const cause = withoutLauncher(facts);
  const causes = [cause];
  if (verdictOf(cause) === 'stopped') return concluded({ life: { state: 'stopped' }, causes });
  if (FAILED.includes(cause.reason)) return concluded({ life: { state: 'failed' }, causes });
  return concluded({ life: { state: 'waiting', for: 'launcher' }, causes });
}
