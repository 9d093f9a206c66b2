import type { EventRecorder } from '../kube/events.ts';
import { type Pod, pod as podSchema, type VirtualMachineInstance } from '../kube/resources.ts';
import { PlumblineError } from '../model/errors.ts';
import { wantsFullPcpus } from '../model/launcher/annotation.ts';
import { type Alignment, decideAlignment } from '../model/launcher/decide.ts';
import { recognizeLauncher, type VmiReference } from '../model/launcher/recognize.ts';
import { DECISION_ANNOTATION } from '../model/names.ts';
import { integralCpus } from '../model/quantity.ts';
import { type AdmissionAnswer, type AdmissionRequest, issuesText } from './admission-review.ts';
import type { ClusterView } from './cluster-view.ts';
import { decisionText } from './decision.ts';
import { type FetchNad, type LauncherNetworks, resolveLauncherNetworks } from './launcher-networks.ts';
import { patchFor, type RawPod } from './patch.ts';
import type { LookUpVmi, VmiLookup } from './vmi-lookup.ts';

export interface PodReviewerOptions {
  readonly lookUpVmi: LookUpVmi;
  readonly fetchNad: FetchNad;
  readonly view: ClusterView;
  readonly events: EventRecorder;
  /** The feature gate FullPCPUsOnly. */
  readonly gate: boolean;
}

/**
 * Decides the admission of one pod. Every pod that is no launcher is admitted as it is. For a launcher:
 *
 * | its VMI | outcome |
 * |---|---|
 * | found | padded and given its devices, as its annotations and networks ask |
 * | absent (404) | admitted unchanged, with a warning: the pod's owner is gone and the pod will be collected |
 * | another uid | the same: the pod belongs to a VMI that was deleted and re-created |
 * | unreadable (timeout, no permission) | refused with 503: virt-controller creates the launcher again in a moment, and a launcher admitted unpadded would never be scheduled |
 *
 * Annotations that cannot be read refuse the pod (400) with the reason.
 */
export function createPodReviewer(
  options: PodReviewerOptions,
): (request: AdmissionRequest) => Promise<AdmissionAnswer> {
  const { lookUpVmi, events } = options;
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const parsed = podSchema.safeParse(request.object);
    if (!parsed.success) return refuse(400, `this is no Pod: ${issuesText(parsed.error)}`);
    const pod = parsed.data;
    const recognized = recognizeLauncher(pod);
    if (recognized.kind === 'other') return { allowed: true };
    const namespace = request.namespace ?? pod.metadata.namespace ?? 'default';
    const found = await lookUpVmi(namespace, recognized.vmi);
    if (found.kind !== 'found') return withoutVmi(pod, namespace, recognized.vmi, found);
    try {
      const raw = request.object as RawPod;
      const review = await reviewLauncher(
        { pod, raw, vmi: found.vmi, namespace, compute: recognized.compute },
        options,
      );
      if (request.dryRun !== true) announce(events, namespace, recognized.vmi, review);
      return review.answer;
    } catch (error) {
      if (error instanceof PlumblineError) return refuse(400, error.message);
      throw error;
    }
  };
}

function withoutVmi(
  pod: Pod,
  namespace: string,
  reference: VmiReference,
  found: Exclude<VmiLookup, { kind: 'found' }>,
): AdmissionAnswer {
  const name = `VirtualMachineInstance ${namespace}/${reference.name}`;
  if (found.kind === 'absent') return admitUnchanged(pod, `${name} does not exist, so this launcher is left as it is`);
  if (found.kind === 'unreadable') return refuse(503, `${name} could not be read (${found.why}); try again`);
  const why = `${name} was re-created (uid ${found.uid}, this launcher belongs to ${reference.uid})`;
  return admitUnchanged(pod, `${why}, so this launcher is left as it is`);
}

interface Launcher {
  readonly pod: Pod;
  readonly raw: RawPod;
  readonly vmi: VirtualMachineInstance;
  readonly namespace: string;
  /** Index of `compute` in spec.containers. */
  readonly compute: number;
}

interface LauncherReview {
  readonly answer: AdmissionAnswer;
  readonly alignment: Alignment;
  readonly networks: LauncherNetworks;
}

async function reviewLauncher(launcher: Launcher, options: PodReviewerOptions): Promise<LauncherReview> {
  const { pod, raw, vmi, namespace, compute } = launcher;
  const { view, fetchNad, gate } = options;
  const alignment = decideAlignment({ pod, vmi, candidates: view.threadsPerCore(), gate });
  const networks = await resolveLauncherNetworks(pod, vmi, namespace, view, fetchNad);
  const cpus = alignment.kind === 'pad' ? alignment.to : currentCpus(pod, compute);
  const aligns = alignment.kind === 'pad' || alignment.why === 'aligned';
  const patch = patchFor(raw, {
    container: compute,
    cpus: alignment.kind === 'pad' ? alignment.to : undefined,
    resources: networks.resources,
    annotations: {
      [DECISION_ANNOTATION]: decisionText(vmi, aligns ? cpus : undefined, networks.networks, networks.resources),
    },
  });
  const warnings = [...alignment.warnings.map(({ message }) => message), ...networks.warnings];
  return { answer: { allowed: true, patch, warnings }, alignment, networks };
}

function currentCpus(pod: Pod, compute: number): number | undefined {
  return integralCpus(pod.spec.containers[compute]?.resources?.limits?.['cpu'] ?? '0');
}

/** Says on the VMI what was done, since a warning on the pod reaches only virt-controller. */
function announce(
  events: EventRecorder,
  namespace: string,
  { name, uid }: VmiReference,
  { alignment, networks }: LauncherReview,
): void {
  const target = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', namespace, name, uid };
  if (alignment.kind === 'pad') {
    const { from, to, threadsPerCore } = alignment;
    const message = `Padded the launcher's CPUs from ${from} to ${to}: whole cores of ${threadsPerCore} threads`;
    events.record(target, { type: 'Normal', reason: 'PaddedToWholeCores', message });
  }
  for (const message of [...alignment.warnings.map((finding) => finding.message), ...networks.warnings]) {
    events.record(target, { type: 'Warning', reason: 'LauncherNotAsAsked', message });
  }
}

function admitUnchanged(pod: Pod, warning: string): AdmissionAnswer {
  return wantsFullPcpus(pod.metadata) ? { allowed: true, warnings: [warning] } : { allowed: true };
}

function refuse(code: number, message: string): AdmissionAnswer {
  return { allowed: false, code, message: `plumbline: ${message}` };
}
