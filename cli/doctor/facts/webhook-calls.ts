import type { X509Certificate } from 'node:crypto';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, LAUNCHER_WEBHOOK, NAMESPACE, WEBHOOK } from '../../../model/names.ts';
import { COMPUTE } from '../../../model/shapes.ts';
import type { ClusterAccess } from '../../support/cluster.ts';
import type { SystemPod } from './objects.ts';
import type { Read } from './read.ts';

/** What the API server does with a new launcher. */
export type LauncherReview =
  | { readonly result: 'reviewed' }
  | { readonly result: 'failed'; readonly webhook: string; readonly why: string }
  /** Someone else refused it, possibly before Plumbline's webhook was called. */
  | { readonly result: 'refused'; readonly why: string };

/** Longer than the webhook's own 10 s, after which the API server says which webhook did not answer. */
const REVIEW_SECONDS = 15;
const REVIEW_NAMESPACE = 'default';
const PODS = `/api/v1/namespaces/${REVIEW_NAMESPACE}/pods`;

/** A launcher that asks for whole cores, of a VMI that does not exist: the webhook looks that up and changes nothing. */
const LAUNCHER = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    generateName: 'plumbline-doctor-',
    labels: { 'kubevirt.io': 'virt-launcher' },
    annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY },
    ownerReferences: [
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        name: 'plumbline-doctor',
        uid: '00000000-0000-4000-8000-000000000000',
        controller: true,
      },
    ],
  },
  spec: {
    // Accepted in namespaces that enforce the restricted Pod Security Standard, too.
    securityContext: { runAsNonRoot: true, runAsUser: 107, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: COMPUTE,
        image: 'virt-launcher',
        resources: { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '1', memory: '64Mi' } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
};

const FAILED_CALL = /failed calling webhook "([^"]+)": (?:failed to call webhook: )?(?:Post "[^"]*": )?(.*)$/s;

/** By a server-side dry run, which stores nothing. */
export async function reviewLauncher(client: KubeClient): Promise<LauncherReview> {
  try {
    await client.create(PODS, LAUNCHER, { query: { dryRun: 'All' }, timeout: REVIEW_SECONDS });
    return { result: 'reviewed' };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    const [, webhook = '', why = ''] = FAILED_CALL.exec(error.message) ?? [];
    if (webhook.endsWith('.plumbline.dev')) return { result: 'failed', webhook, why: why.trim() };
    // The API server answers all other requests, so it waits for a webhook.
    if (error.status === 0) return { result: 'failed', webhook: LAUNCHER_WEBHOOK, why: 'timeout of this command' };
    const isDenied = error.status === 403 && / cannot create resource /.test(error.message);
    return { result: 'refused', why: isDenied ? `you may not create pods in ${REVIEW_NAMESPACE}` : error.message };
  }
}

export interface Presented {
  readonly pod: string;
  readonly certificate: X509Certificate;
}

/** The certificate of each replica that answers. @returns `forbidden` without pods/portforward */
export async function presentedCertificates(
  { config, requestTimeout }: ClusterAccess,
  pods: Read<readonly SystemPod[]>,
): Promise<Read<readonly Presented[]>> {
  if (pods.missing !== undefined) return pods;
  const replicas = pods.value.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === WEBHOOK);
  if (replicas.length === 0) return { value: [] };
  const { certificateOfPod, forwardFailure } = await import('../../extender/port-forward.ts');
  const server = `${WEBHOOK}.${NAMESPACE}.svc`;
  const read = await Promise.all(
    replicas.map(async ({ metadata: { name = '' } }): Promise<readonly Presented[] | 'forbidden'> => {
      const target = { namespace: NAMESPACE, pod: name, port: 8443 };
      try {
        return [{ pod: name, certificate: await certificateOfPod(config, target, server, { requestTimeout }) }];
      } catch (error) {
        // A replica that does not answer is the finding of the review and of its readiness.
        return forwardFailure(error).status === 403 ? 'forbidden' : [];
      }
    }),
  );
  return read.includes('forbidden')
    ? { missing: 'forbidden' }
    : { value: read.flatMap((answer) => (answer === 'forbidden' ? [] : answer)) };
}
