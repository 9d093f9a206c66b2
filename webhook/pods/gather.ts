import { pod as podSchema, tolerations } from '../../kube/resources.ts';
import type {
  LauncherFacts,
  OrdinaryFacts,
  OwnerFacts,
  PodFacts,
  SchedulerFacts,
  Settings,
} from '../../model/admission/facts.ts';
import { issuesText, PlumblineError } from '../../model/errors.ts';
import { asksForAlignment, asksForWholeCores, hasAsked } from '../../model/launcher/annotation.ts';
import { integralAt, type PodResources, podResourcesOf } from '../../model/launcher/containers.ts';
import { fitsLauncher, recognizeLauncher } from '../../model/launcher/recognize.ts';
import { beforeSmtAffinity } from '../../model/launcher/smt-affinity.ts';
import { type ClusterFactsOptions, gatherCluster, type LookUpVmi } from '../cluster/cluster-facts.ts';
import type { AdmissionRequest } from '../review/admission-review.ts';

export interface GatherOptions extends Settings, ClusterFactsOptions {
  readonly lookUpVmi: LookUpVmi;
  readonly route: SchedulerFacts;
}

const admittedPod = podSchema.extend({ spec: podSchema.shape.spec.extend({ tolerations }) });

type ReadLauncher = Omit<LauncherFacts, 'owner' | 'settings' | 'scheduler'>;

export type ReadPod =
  | ReadLauncher
  | Omit<OrdinaryFacts, 'resources' | 'cluster' | 'settings' | 'scheduler'>
  | Exclude<PodFacts, LauncherFacts | OrdinaryFacts>;

export function podUnderReview({ object, namespace: inNamespace }: AdmissionRequest): ReadPod {
  const parsed = admittedPod.safeParse(object);
  if (!parsed.success) return { kind: 'unreadable', why: `the object is not a Pod: ${issuesText(parsed.error)}` };
  const pod = parsed.data;
  const namespace = inNamespace ?? pod.metadata.namespace ?? 'default';
  const launcher = recognizeLauncher(pod);
  if (launcher.kind === 'launcher') return { ...launcher, pod, namespace };
  return asksForAlignment(pod.metadata) ? { kind: 'ordinary', pod, namespace } : { kind: 'other', pod };
}

/** Reads all input of the decision about a pod. For a pod that needs no decision it reads nothing. */
export async function gather(request: AdmissionRequest, options: GatherOptions): Promise<PodFacts> {
  const read = podUnderReview(request);
  if (read.kind !== 'launcher' && read.kind !== 'ordinary') return read;
  const { gate, policy, oversized, route } = options;
  const common = { settings: { gate, policy, oversized }, scheduler: { ...route } };
  if (read.kind === 'launcher') return { ...read, ...common, owner: await gatherOwner(read, options) };
  const { pod, namespace } = read;
  let resources: PodResources;
  try {
    resources = podResourcesOf(pod);
  } catch (error) {
    return malformed(error);
  }
  const exclusive = asksForWholeCores(pod.metadata) && resources.exclusive;
  const cluster = await gatherCluster({ namespace, pod, exclusive }, beforeSmtAffinity(pod.spec), options);
  return { ...read, ...common, resources, cluster };
}

/** A launcher that does not opt in starts even if its VMI cannot be read. */
async function gatherOwner(
  { pod, namespace, vmi: reference, compute }: ReadLauncher,
  options: GatherOptions,
): Promise<OwnerFacts> {
  if (options.policy === 'annotated' && !hasAsked(pod.metadata)) return { kind: 'not-asked' };
  try {
    const resources = podResourcesOf(pod);
    const cpus = integralAt(resources, { list: 'containers', index: compute })?.cpus;
    const lookup = await options.lookUpVmi(namespace, reference, (candidate) =>
      fitsLauncher(pod, cpus, namespace, candidate),
    );
    if (lookup.kind !== 'found') return lookup;
    const { vmi } = lookup;
    const owner = { namespace, pod, vmi, exclusive: resources.exclusive };
    const cluster = await gatherCluster(owner, beforeSmtAffinity(pod.spec), options);
    return { kind: 'found', vmi, resources, cluster };
  } catch (error) {
    return malformed(error);
  }
}

function malformed(error: unknown): { readonly kind: 'malformed'; readonly why: string } {
  if (error instanceof PlumblineError) return { kind: 'malformed', why: error.message };
  throw error;
}
