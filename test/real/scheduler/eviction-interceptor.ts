import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import type { ControlPlane } from '../control-plane.ts';

/**
 * virt-api's webhook for pods/eviction, on a real API server: it denies with 429 what the real one denies for VMs with
 * `evictionStrategy: LiveMigrate` (KubeVirt's pod-eviction-admitter.go). A launcher whose guest has not started has a
 * VMI that is not live-migratable yet; the target of a migration is on another node than its VMI.
 */
export interface EvictionInterceptor {
  /** Reviews so far, as `namespace/name`. */
  readonly asked: string[];
  stop(): Promise<void>;
}

interface Review {
  readonly request: { readonly uid: string; readonly namespace: string; readonly name: string };
}
interface Launcher {
  readonly metadata: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status?: { readonly phase?: string };
}

export async function installInterceptor({ client, create }: ControlPlane): Promise<EvictionInterceptor> {
  const authority = createCertificateAuthority('virt-api');
  const asked: string[] = [];
  /** Undefined: it is allowed. */
  const denial = async ({ namespace, name }: Review['request']): Promise<string | undefined> => {
    const pod = (await client.get(`/api/v1/namespaces/${namespace}/pods/${name}`)) as Launcher;
    const { labels = {}, annotations = {} } = pod.metadata;
    const vmi = annotations['kubevirt.io/domain'];
    const isCompleted = ['Failed', 'Succeeded'].includes(pod.status?.phase ?? '');
    if (labels['kubevirt.io'] !== 'virt-launcher' || isCompleted || vmi === undefined) return undefined;
    if (labels['kubevirt.io/migrationJobUID'] !== undefined) return 'Eviction request for target Pod';
    return `VMI ${vmi} is configured with an eviction strategy but is not live-migratable`;
  };
  const answer = async ({ request }: Review): Promise<object> => {
    asked.push(`${request.namespace}/${request.name}`);
    const message = await denial(request);
    const verdict = message === undefined ? { allowed: true } : { allowed: false, status: { message, code: 429 } };
    return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: request.uid, ...verdict } };
  };
  const server = createServer(authority.issue(['localhost']), async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
    response.setHeader('content-type', 'application/json').end(JSON.stringify(await answer(review)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await create({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'virt-api-validator' },
    webhooks: [
      {
        name: 'virt-launcher-eviction-interceptor.kubevirt.io',
        admissionReviewVersions: ['v1'],
        failurePolicy: 'Ignore',
        sideEffects: 'NoneOnDryRun',
        rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods/eviction'] }],
        clientConfig: {
          url: `https://localhost:${(server.address() as AddressInfo).port}/launcher-eviction-validate`,
          caBundle: Buffer.from(authority.cert).toString('base64'),
        },
        matchConditions: [{ name: 'only-vms', expression: 'object.metadata.name.startsWith("virt-launcher")' }],
      },
    ],
  });
  return {
    asked,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
