import type { Finding } from '../errors.ts';
import type { AlignmentPolicy, OversizedPolicy } from '../launcher/annotation.ts';
import type { ContainerPath, IntegralContainer, PodResources } from '../launcher/containers.ts';
import type { NodeRequirement, SelectingSpec } from '../launcher/node-selection.ts';
import type { Recognition } from '../launcher/recognize.ts';
import type { NodeKind } from '../launcher/smt-affinity.ts';
import type { NetworkContext } from '../networks/context.ts';
import type { PrimaryNetwork } from '../networks/interfaces.ts';
import type { NadFacts } from '../networks/nad.ts';
import type { ReportedNetworks } from '../networks/resources.ts';
import type { PodShape, VmiShape } from '../shapes.ts';

export interface AdmittedPod extends PodShape {
  readonly spec: PodShape['spec'] & SelectingSpec;
}

export interface Settings {
  readonly gate: boolean;
  readonly policy: AlignmentPolicy;
  readonly oversized: OversizedPolicy;
}

export interface SchedulerFacts {
  /** Empty: every pod keeps its own scheduler. */
  readonly schedulerName: string;
  /** Why that scheduler does not work at present; undefined while it works. */
  readonly away: string | undefined;
}

/** Facts that decide through which network of the host each interface of a pod goes. */
export interface NetworkFacts {
  /** The primary user-defined network, if it replaces the pod network in the pod's namespace. */
  readonly primary: PrimaryNetwork;
  readonly reported: ReportedNetworks;
  readonly context: NetworkContext;
  /** The definitions of the pod's networks by `namespace/name`. An absent one could not be found. */
  readonly definitions: ReadonlyMap<string, NadFacts>;
}

export interface ClusterFacts {
  /** The kinds of the reporting nodes that the pod can run on: see beforeSmtAffinity. */
  readonly candidates: readonly NodeKind[];
  /** Whether all nodes that it can run on have a report. Also false, unchecked, if no network is required. */
  readonly allReport: boolean;
  readonly nodeKinds: readonly NodeKind[];
  readonly networks: NetworkFacts;
}

export type OwnerFacts =
  /** Not looked up: the VMI cannot change the decision. */
  | { readonly kind: 'not-asked' }
  | { readonly kind: 'found'; readonly vmi: VmiShape; readonly resources: PodResources; readonly cluster: ClusterFacts }
  /** No VMI with that name exists. The owner is gone, so the pod will be garbage-collected. */
  | { readonly kind: 'absent' }
  /** The VMI with that name has another uid: it was created again, and the pod belongs to its predecessor. */
  | { readonly kind: 'replaced'; readonly uid: string }
  | { readonly kind: 'unreadable'; readonly why: string }
  /** An amount or annotation of the launcher is malformed, so it cannot be compared with its VMI. */
  | { readonly kind: 'malformed'; readonly why: string };

interface ReviewedPod {
  readonly pod: AdmittedPod;
  readonly namespace: string;
  readonly settings: Settings;
  readonly scheduler: SchedulerFacts;
}

export interface LauncherFacts extends ReviewedPod, Extract<Recognition, { kind: 'launcher' }> {
  readonly owner: OwnerFacts;
}

export interface OrdinaryFacts extends ReviewedPod {
  readonly kind: 'ordinary';
  readonly resources: PodResources;
  readonly cluster: ClusterFacts;
}

/** All input of the decision about one pod. It is read before the decision; the decision itself reads nothing. */
export type PodFacts =
  | LauncherFacts
  | OrdinaryFacts
  | { readonly kind: 'other'; readonly pod: AdmittedPod }
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'unreadable'; readonly why: string };

/** The CPU changes of a pod: of a launcher, or of an ordinary pod that asks for whole cores. */
export interface PodCpus {
  readonly exclusive: boolean;
  /** Whether Plumbline is responsible for whole cores: it then keeps the pod from nodes that would reject it. */
  readonly answered: boolean;
  readonly threadsPerCore: number | undefined;
  /** The containers with exclusive CPUs, with the CPUs that they get. */
  readonly amounts: readonly Pick<IntegralContainer, 'list' | 'cpus'>[];
  /** The containers that may change; `cpus` is undefined for a container that keeps its CPUs. */
  readonly containers: readonly (ContainerPath & { readonly cpus: number | undefined })[];
  /** The container that requests the device resources. */
  readonly bearer: ContainerPath | undefined;
  /** Plumbline's resources that this container requests in addition to those of its networks. */
  readonly plumblineResources: readonly string[];
  /** For the decision annotation: CPUs by container, and the number of CPUs added to those that the VMI needs. */
  readonly stated: Readonly<Record<string, number>>;
  readonly padding: number;
  /** For the decision annotation: why a launcher that asks for whole cores is not padded. */
  readonly unpadded?: string | undefined;
  readonly findings: readonly Finding[];
}

export interface ContainerChange extends ContainerPath {
  /** Request and limit; undefined leaves them unchanged. */
  readonly cpus?: number | undefined;
  /** Extended resources of which the container requests one each. */
  readonly resources: readonly string[];
}

export interface PodChange {
  readonly containers: readonly ContainerChange[];
  /** Annotations to set; undefined removes one. */
  readonly annotations: Readonly<Record<string, string | undefined>>;
  /** Node requirements of which one must hold. */
  readonly nodes: readonly NodeRequirement[] | undefined;
  /** Undefined leaves the pod's own. */
  readonly scheduler?: string | undefined;
}

export interface AdmissionFinding extends Finding {
  /** Of the refusal; default 422. */
  readonly status?: number;
}

export type Decision =
  | { readonly outcome: 'unchanged'; readonly findings: readonly AdmissionFinding[] }
  | {
      readonly outcome: 'changed';
      readonly changes: PodChange;
      /** Warnings and information. No errors. */
      readonly findings: readonly AdmissionFinding[];
    }
  | {
      readonly outcome: 'refused';
      readonly code: number;
      /** The message of the first error. */
      readonly reason: string;
      /** All errors, then warnings and information as for an admitted pod. */
      readonly findings: readonly AdmissionFinding[];
    };

/** Without init containers. Sidecars do not count. */
export function cpusWhileRunning({ amounts }: Pick<PodCpus, 'amounts'>): number {
  return amounts.reduce((sum, { list, cpus }) => (list === 'containers' ? sum + cpus : sum), 0);
}
