import { countText } from '../amounts.ts';
import type { DpuConnection } from '../cni/connection-status.ts';
import { few } from '../errors.ts';
import { DPU_RUN_ANNOTATION } from '../names.ts';
import { type ManagedFields, ownsField } from '../shapes.ts';
import { type DpuRestart, parseDpuRun, restartOf, restartText } from './dpu-run.ts';
import { isReleased, type LeaseFault, type LeaseShape, repairLease } from './repair.ts';
import { leaseSeconds, MAX_LEASE_SECONDS, MIN_LEASE_SECONDS, parseMicroTime } from './timing.ts';

export interface LeaseLook extends WriterSample {
  /** Milliseconds since 1970 by the observer's clock. */
  readonly at: number;
  readonly lease: LeaseShape;
}

export interface DpuSighting {
  readonly node: string;
  /** Undefined if the node does not exist. */
  readonly uid: string | undefined;
  readonly dpuHost: boolean;
  /** In order of time; empty if there is no lease. */
  readonly looks: readonly LeaseLook[];
  /** Running pods whose network is older than the DPU's last restart. */
  readonly podsWithoutNetwork: readonly string[];
  /** Networks that the DPU was asked to connect and has not connected. */
  readonly waiting: readonly (DpuConnection & { readonly pod: string })[];
}

export interface DpuDiagnosis {
  readonly node: string;
  readonly renewals: number;
  readonly writers: readonly string[];
  /** Each with the next step. */
  readonly problems: readonly string[];
  readonly notes: readonly string[];
}

const FAULTS: Readonly<Record<LeaseFault, string>> = {
  'no-owner': 'has no owner, so it stays when the node is deleted',
  'foreign-owner': 'is owned by an object other than the present Node, so it may be deleted under a live node',
  'owner-fields': 'has an ownerReference that blocks the node’s deletion or lacks a field',
  holder: 'names another holder',
  duration: `has no duration of ${MIN_LEASE_SECONDS} to ${MAX_LEASE_SECONDS} s`,
};
/** Difference of two clocks, in seconds, that is worth a note. */
const NOTABLE_SKEW_SECONDS = 60;
const MAX_NAMED_PODS = 5;
const MAX_WRITER_CHARACTERS = 80;
const MAX_POD_CHARACTERS = 320;

/** From observations over some time. @param lease its name */
export function diagnoseDpu(
  lease: string,
  { node, uid, dpuHost, looks, podsWithoutNetwork, waiting }: DpuSighting,
): DpuDiagnosis {
  // Two mean that two agents, or an agent and OVN-Kubernetes, renew it: one may hide that the DPU is dead.
  const writers = [...new Set(looks.map(renewalWriter).filter((writer) => writer !== undefined))].sort();
  const renewals = looks.filter(({ renewTime }, i) => i > 0 && renewTime !== looks[i - 1]?.renewTime).length;
  const last = looks.at(-1);
  const missing = `lease ${lease} does not exist; the agent on this host (--mode dpu-host) or OVN-Kubernetes creates it`;
  const withoutLease = dpuHost ? [missing] : [];
  const problems = last ? ofLease(lease, { node, uid, last, looks, writers, renewals }) : withoutLease;
  const off = isReleased(last?.lease.spec) ? ['its host has turned the health check off'] : [];
  return {
    node,
    renewals,
    writers,
    problems: [...problems, ...ofRestart(lease, last, podsWithoutNetwork), ...ofPods(waiting)],
    notes: [...off, ...skew(last)],
  };
}

type LeaseHistory = Pick<DpuSighting, 'node' | 'uid' | 'looks'> &
  Pick<DpuDiagnosis, 'writers' | 'renewals'> & { readonly last: LeaseLook };

function ofLease(name: string, { node, uid, last, looks, writers, renewals }: LeaseHistory): string[] {
  const problems: string[] = [];
  const duration = leaseSeconds(last.lease.spec?.leaseDurationSeconds);
  const released = isReleased(last.lease.spec);
  if (writers.length > 1) {
    problems.push(
      `lease ${name} has ${writers.length} writers, ${few(writers, MAX_NAMED_PODS, MAX_WRITER_CHARACTERS).join(' and ')}: one of them can hide that the other’s DPU is dead; ` +
        'start Plumbline with --dpu-lease observe: OVN-Kubernetes’ lease manager also repairs networks after a DPU’s restart',
    );
  }
  if (uid === undefined) {
    problems.push(`lease ${name} exists, but node ${node} does not; delete the lease`);
  } else {
    const repair = repairLease(last.lease, { nodeName: node, nodeUid: uid, duration });
    const faults = repair.kind === 'repair' && !released ? repair.faults : [];
    for (const fault of faults) problems.push(`lease ${name} ${FAULTS[fault]}; the agent on the host corrects that`);
  }
  const watched = (last.at - (looks[0]?.at ?? last.at)) / 1000;
  const check = 'check the DPU, its Open vSwitch and the agent on it';
  if (isLongExpired(last)) {
    const since = `expired after its last renewal, ${last.renewTime}`;
    problems.push(`lease ${name} ${since}; ${check}; if its health check was turned off, delete the lease`);
  } else if (!released && renewals === 0 && watched >= duration / 2) {
    const ago = `was not renewed in ${Math.round(watched)} s`;
    problems.push(`lease ${name} ${last.renewTime === undefined ? 'has never been renewed' : ago}; ${check}`);
  }
  return problems;
}

/** By more than clocks may differ, so that no one needs to watch it. */
export function isLongExpired({ at, lease, renewTime }: LeaseLook): boolean {
  const age = ageSeconds({ at, renewTime });
  if (age === undefined || isReleased(lease.spec)) return false;
  return age > leaseSeconds(lease.spec?.leaseDurationSeconds) + NOTABLE_SKEW_SECONDS;
}

/** Of the last renewal, by two clocks. */
function ageSeconds({ at, renewTime = '' }: Pick<LeaseLook, 'at' | 'renewTime'>): number | undefined {
  const renewed = parseMicroTime(renewTime);
  return renewed === undefined ? undefined : at / 1000 - Number(renewed / 1000n) / 1000;
}

function ofRestart(name: string, last: LeaseLook | undefined, podsWithoutNetwork: readonly string[]): string[] {
  const restart = lastRestart(last?.lease);
  if (restart === undefined || podsWithoutNetwork.length === 0) return [];
  const pods = few(podsWithoutNetwork, MAX_NAMED_PODS, MAX_POD_CHARACTERS).join(', ');
  return [
    `${countText(podsWithoutNetwork.length, 'pod has', 'pods have')} lost the network since ${restartText(restart)}: ${pods}; ` +
      `migrate or restart them (--dpu-recovery migrate); if their networks work, remove ${DPU_RUN_ANNOTATION} from lease ${name}`,
  ];
}

/** The last restart of a DPU whose health check is on. */
export function lastRestart(lease: LeaseShape | undefined): DpuRestart | undefined {
  if (lease === undefined || isReleased(lease.spec)) return undefined;
  return restartOf(parseDpuRun(lease.metadata.annotations?.[DPU_RUN_ANNOTATION]));
}

function ofPods(waiting: DpuSighting['waiting']): string[] {
  if (waiting.length === 0) return [];
  const named = waiting
    .slice(0, MAX_NAMED_PODS)
    .map(({ pod, network, state, reason }) => `${pod} (${network}: ${state === 'absent' ? 'no answer' : reason})`);
  const rest = waiting.length > MAX_NAMED_PODS ? ` and ${waiting.length - MAX_NAMED_PODS} more` : '';
  return [`the DPU has not connected ${named.join(', ')}${rest}; check ovnkube on the DPU`];
}

function skew(last: LeaseLook | undefined): string[] {
  const ahead = Math.round(-((last && ageSeconds(last)) ?? 0));
  if (ahead < NOTABLE_SKEW_SECONDS) return [];
  return [`its clock is at least ${ahead} s ahead of this one; this is harmless, because no component compares clocks`];
}

interface WriterSample {
  readonly renewTime: string | undefined;
  readonly managedFields: readonly ManagedFields[];
}

/** Undefined if the API server has not recorded it. */
export function renewalWriter({ managedFields }: WriterSample): string | undefined {
  return managedFields.find((entry) => ownsField(entry, ['spec', 'renewTime']))?.manager;
}
