import type { EventTarget } from '../../kube/events.ts';
import type { Pod } from '../../kube/resources.ts';
import { PlumblineError } from '../../model/errors.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { EVEN_PARITY_ANNOTATION } from '../../model/launcher/cpus.ts';
import { fitsLauncher } from '../../model/launcher/fits.ts';
import type { AlignmentPolicy } from '../../model/launcher/policy.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import { NETWORKS_ANNOTATION } from '../../model/networks/attachments.ts';
import { type AdmissionAnswer, type AdmissionRequest, refused } from '../admission-review.ts';
import { vmiTarget } from './announce.ts';
import type { PodDecision } from './decision.ts';
import { type DecideOptions, decideLauncher, leaveLauncher } from './launcher.ts';
import { decideOrdinaryPod } from './ordinary.ts';
import { type ReadPod, readPod } from './read-pod.ts';
import { reservedClaim } from './reserved.ts';
import type { LookUpVmi } from './vmi-lookup.ts';

export interface DecidePodOptions extends DecideOptions {
  readonly lookUpVmi: LookUpVmi;
}

/** What a pod comes to, at whichever point of its admission. `target` is the VMI to tell of it, if there is one. */
export type PodOutcome =
  | { readonly kind: 'decided'; readonly decision: PodDecision; readonly target: EventTarget | undefined }
  | { readonly kind: 'answered'; readonly answer: AdmissionAnswer; readonly target: EventTarget | undefined };

/**
 * Decides about one pod. One that is neither a launcher nor asks for whole cores is admitted as it is, and so is a
 * launcher for which nothing could follow from its VMI. For any other launcher:
 *
 * | its VMI | outcome |
 * |---|---|
 * | found | padded and given its devices, as its annotations and networks ask |
 * | absent (404) | admitted unchanged, with a warning: the pod's owner is gone and the pod will be collected |
 * | another uid | the same: the pod belongs to a VMI that was deleted and re-created |
 * | unreadable (timeout, no permission) | refused with 503: virt-controller creates the launcher again in a moment, and a launcher admitted unpadded would never be scheduled |
 *
 * Annotations that cannot be read refuse the pod (400) with the reason. A pod that nothing was decided for and that has
 * Plumbline's resources or decision is refused (403).
 */
export async function decidePod(request: AdmissionRequest, options: DecidePodOptions): Promise<PodOutcome> {
  const read = readPod(request);
  const target = read.kind === 'launcher' ? vmiTarget(read.namespace, read.vmi) : undefined;
  try {
    return { ...(await decideRead(read, options)), target };
  } catch (error) {
    if (!(error instanceof PlumblineError)) throw error;
    return { kind: 'answered', answer: refused(400, error.message), target };
  }
}

type Undirected = PodOutcome extends infer T ? (T extends unknown ? Omit<T, 'target'> : never) : never;

async function decideRead(read: ReadPod, options: DecidePodOptions): Promise<Undirected> {
  switch (read.kind) {
    case 'unreadable':
      return { kind: 'answered', answer: read.answer };
    case 'other':
      return unchanged(read.pod);
    case 'ordinary': {
      const decision = await decideOrdinaryPod(read.pod, read.namespace, options);
      return decision === undefined ? unchanged(read.pod) : { kind: 'decided', decision };
    }
    case 'launcher':
      return decideOwned(read, options);
  }
}

/**
 * Without any of these a launcher is aligned only if all are, has no network that it is held to, and no mask. The webhook
 * configurations name them too, so that no other launcher waits for this webhook.
 */
export const ASKING: readonly string[] = [
  FULL_PCPUS_ANNOTATION,
  EVEN_PARITY_ANNOTATION,
  CPU_MASK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
];

/** A VMI is not looked up for nothing: a launcher that asks for nothing starts even while no VMI can be read. */
function asksForSomething({ metadata: { annotations = {} } }: Pod, policy: AlignmentPolicy): boolean {
  return policy !== 'annotated' || ASKING.some((name) => annotations[name] !== undefined);
}

async function decideOwned(
  { pod, namespace, vmi: reference, compute }: Extract<ReadPod, { kind: 'launcher' }>,
  options: DecidePodOptions,
): Promise<Undirected> {
  if (!asksForSomething(pod, options.policy)) return { kind: 'decided', decision: leaveLauncher(pod, compute) };
  const found = await options.lookUpVmi(namespace, reference, (vmi) => fitsLauncher(pod, compute, namespace, vmi));
  const name = `VirtualMachineInstance ${namespace}/${reference.name}`;
  switch (found.kind) {
    case 'found':
      return {
        kind: 'decided',
        decision: await decideLauncher({ pod, vmi: found.vmi, namespace, compute }, options),
      };
    case 'absent':
      return unchanged(pod, `${name} does not exist, so this launcher is left as it is`);
    case 'replaced': {
      const why = `${name} was re-created (uid ${found.uid}, this launcher belongs to ${reference.uid})`;
      return unchanged(pod, `${why}, so this launcher is left as it is`);
    }
    case 'unreadable':
      return { kind: 'answered', answer: refused(503, `${name} could not be read (${found.why}); try again`) };
  }
}

function unchanged(pod: Pod, warning?: string): Undirected {
  const claim = reservedClaim(pod);
  if (claim !== undefined) return { kind: 'answered', answer: refused(403, claim) };
  const says = warning !== undefined && wantsWholeCores(pod.metadata) ? { warnings: [warning] } : {};
  return { kind: 'answered', answer: { allowed: true, ...says } };
}
