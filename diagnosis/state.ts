import { type Cause, cause, type InstanceFacts, type MigrationFacts, type VmFacts } from './facts.ts';
import {
  failedMigration,
  type MigrationInProgress,
  type MigrationState,
  migrationCause,
  pendingChanges,
} from './migration.ts';
import { REASONS, type Reason, type Verdict, worst } from './reasons.ts';
import { withoutLauncher } from './refused.ts';
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

const verdictOf = ({ reason }: Cause): Verdict => REASONS[reason].verdict;

const faultsAmong = (causes: readonly Cause[]): Cause[] =>
  causes.filter((each) => ['waiting', 'degraded', 'broken'].includes(verdictOf(each)));

const isIn =
  (...states: readonly Stage[]) =>
  ({ state: { life } }: Launcher): boolean =>
    states.includes(life.state);
const hasGuest = isIn('running', 'paused');
const isStaying = isIn('waiting', 'starting', 'running', 'paused');
const isLive = isIn('waiting', 'starting', 'running', 'paused', 'stopping');

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

export function deleting(node: string | undefined): LauncherState {
  return {
    life: { state: 'stopping' },
    causes: [cause('Deleting', `it is being deleted${node ? ` on ${node}` : ''}`)],
  };
}

/** A running VM with a cause that is not `ok` does not run as requested. */
export function concluded({ life, causes }: LauncherState): VmState {
  const main = worst(causes)!;
  const { reason, text } = main;
  const others = causes.filter((other) => other !== main);
  const faults = faultsAmong(causes);
  const isDegraded = life.state === 'running' && faults.length > 0;
  const state = isDegraded ? ({ state: 'not-as-requested', faults } as const) : life;
  return { ...state, verdict: verdictOf(main), reason, text, causes: others, remedies: remediesOf([main, ...others]) };
}

/** Each remedy once. */
function remediesOf(causes: readonly Cause[]): Remedy[] {
  const remedies = causes.flatMap((each) => each.remedies);
  return [...new Map(remedies.map((remedy) => [`${remedy.id} ${remedy.text}`, remedy])).values()];
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
type ActiveMigration = MigrationFacts & { readonly progress: MigrationInProgress };
const isActive = (migration: MigrationFacts | undefined): migration is ActiveMigration =>
  migration !== undefined && !ENDED.includes(migration.progress);

/** The launcher of a current migration. A label of an earlier migration stays on the launcher that it created. */
function targetLauncher(migration: MigrationFacts | undefined, guest: Launcher, launchers: readonly Launcher[]) {
  const uid = migration?.uid;
  const labelled = launchers.filter((launcher) => launcher !== guest && launcher.migration !== undefined);
  if (isActive(migration) && uid !== undefined) return labelled.find((launcher) => launcher.migration === uid);
  return labelled.find(
    (launcher) => launcher.migration !== uid && launcher.created >= guest.created && isStaying(launcher),
  );
}

/** KubeVirt has handed the guest over to the target; it records the end of the migration some seconds later. */
function hasArrived(migration: MigrationFacts | undefined, { migration: uid }: Launcher): migration is ActiveMigration {
  return isActive(migration) && uid !== undefined && uid === migration.uid;
}

/** A guest that has arrived runs there like any other, unless it still fetches its memory. */
function postCopy({ progress, name }: MigrationFacts, guest: Launcher, launchers: readonly Launcher[]) {
  const source = launchers.find((one) => one !== guest && one.node !== undefined)?.node;
  if (progress !== 'post-copy' || source === undefined) return undefined;
  return { phase: progress, source, target: guest.node, name } satisfies MigrationState;
}

function migrationState(
  { migration, instance }: VmFacts,
  source: string,
  target: Launcher | undefined,
): MigrationState | undefined {
  if (!isActive(migration) && target === undefined) {
    if (instance?.evacuatedFrom !== source) return undefined;
    return { phase: migration?.progress === 'failed' ? 'retrying' : 'requested', source };
  }
  const { progress = 'pending', name } = isActive(migration) ? migration : {};
  const commonFields = { source, target: target?.node, name, launcher: target?.uid };
  if (progress !== 'pending') return { phase: progress, ...commonFields };
  if (target === undefined) return { phase: 'pending', ...commonFields };
  const { node } = target;
  const worstCause = worst(target.state.causes)!;
  const waits = hasGuest(target) || worstCause.reason === 'Starting' ? undefined : worstCause;
  return { phase: node === undefined ? 'scheduling' : 'preparing', ...commonFields, ...(waits && { waits }) };
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
  const there = target !== undefined && hasGuest(target) ? faultsAmong(target.state.causes) : [];
  const main = migrationCause(facts, migration);
  const { reason, text } = main;
  const causes = [
    ...sourceCauses,
    ...there
      .filter((each) => !UNTIL_HANDOVER.includes(each.reason))
      .map((each) => ({ ...each, text: `on its target: ${each.text}` })),
  ];
  const verdict = verdictOf(worst([main, ...causes])!);
  const remedies = remediesOf([main, ...causes]).filter((remedy) => !migrates(remedy));
  return { state: 'migrating', migration, faults: faultsAmong(causes), verdict, reason, text, causes, remedies };
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
  const main = withoutLauncher(facts);
  const causes = [main];
  if (verdictOf(main) === 'stopped') return concluded({ life: { state: 'stopped' }, causes });
  if (FAILED.includes(main.reason)) return concluded({ life: { state: 'failed' }, causes });
  return concluded({ life: { state: 'waiting', for: 'launcher' }, causes });
}
