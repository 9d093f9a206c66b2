import type { NodeKind } from '../launcher/node-kind.ts';
import type { SelectingSpec } from '../launcher/node-selection.ts';
import type { AlignmentPolicy, OversizedPolicy } from '../launcher/policy.ts';
import type { VmiReference } from '../launcher/recognize.ts';
import type { PodShape, VmiShape } from '../launcher/shapes.ts';
import type { NetworkContext } from '../networks/context.ts';
import type { NetworkedVmi, PrimaryNetwork } from '../networks/interfaces.ts';
import type { NadFacts } from '../networks/nad.ts';
import type { ReportedNetworks } from '../networks/resources.ts';

/** A pod as it comes under review. */
export interface AdmittedPod extends PodShape {
  readonly spec: PodShape['spec'] & SelectingSpec & { readonly schedulerName?: string | undefined };
}

/** How this webhook was configured. */
export interface Settings {
  /** The feature gate FullPCPUsOnly. */
  readonly gate: boolean;
  readonly policy: AlignmentPolicy;
  readonly oversized: OversizedPolicy;
  /** Whether a preferred network is made a hint for the kubelet. */
  readonly preferredHints: boolean;
}

/** The scheduler that launchers, and pods that opt in, are given. */
export interface SchedulerFacts {
  /** `plumbline-scheduler`; empty: every pod keeps its own. */
  readonly schedulerName: string;
  /** Why that scheduler schedules nothing at present; undefined while it works. */
  readonly away: string | undefined;
}

/** What decides where a pod's networks leave the host. */
export interface NetworkFacts {
  /** The primary user-defined network that stands in for the pod network of the pod's namespace. */
  readonly primary: PrimaryNetwork;
  /** The networks that nodes report. */
  readonly reported: ReportedNetworks;
  readonly context: NetworkContext;
  /** The definitions of the pod's networks by `namespace/name`; one that is missing is not to be had. */
  readonly definitions: ReadonlyMap<string, NadFacts>;
}

/** The facts about the cluster that the decision about one pod can need. */
export interface ClusterFacts {
  /** The kinds of the reporting nodes that the pod can go to: see beforeSmtAffinity. */
  readonly candidates: readonly NodeKind[];
  /** Whether all nodes that it can go to report. False also where no network could hold the pod: then it is not asked. */
  readonly allReport: boolean;
  /** The kinds of all reporting nodes. */
  readonly nodeKinds: readonly NodeKind[];
  readonly networks: NetworkFacts;
}

/** What came of looking for a launcher's VMI. */
export type OwnerFacts =
  /** It was not looked up: nothing could follow from it. */
  | { readonly kind: 'not-asked' }
  | { readonly kind: 'found'; readonly vmi: VmiShape & NetworkedVmi; readonly cluster: ClusterFacts }
  /** No VMI of that name: the pod's owner is gone, so the pod will be collected. */
  | { readonly kind: 'absent' }
  /** A VMI of that name with another uid: it was re-created, and the pod belongs to its predecessor. */
  | { readonly kind: 'replaced'; readonly uid: string }
  | { readonly kind: 'unreadable'; readonly why: string }
  /** The launcher itself has an amount or annotation that cannot be read, so it cannot be held against its VMI. */
  | { readonly kind: 'malformed'; readonly why: string };

export interface LauncherFacts {
  readonly kind: 'launcher';
  readonly pod: AdmittedPod;
  readonly namespace: string;
  /** As its owner reference says. */
  readonly vmi: VmiReference;
  /** Index of `compute` in spec.containers. */
  readonly compute: number;
  readonly purpose: 'run' | 'migration-target' | 'provisioning';
  readonly owner: OwnerFacts;
  readonly settings: Settings;
  readonly scheduler: SchedulerFacts;
}

/** Of a pod that asks for whole cores by annotation. */
export interface OrdinaryFacts {
  readonly kind: 'ordinary';
  readonly pod: AdmittedPod;
  readonly namespace: string;
  readonly cluster: ClusterFacts;
  readonly settings: Settings;
  readonly scheduler: SchedulerFacts;
}

/** Everything that the decision about one pod depends on: read before it, and not a thing while it is made. */
export type PodFacts =
  | LauncherFacts
  | OrdinaryFacts
  /** Neither of them: nothing is read for it. */
  | { readonly kind: 'other'; readonly pod: AdmittedPod }
  | { readonly kind: 'unreadable'; readonly why: string };
