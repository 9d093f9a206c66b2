import { createServer } from 'node:https';
import { json } from 'node:stream/consumers';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { listenOnLoopback } from '../../support/processes.ts';
import type { ControlPlane } from '../control-plane-stage.ts';
import type { CreatedPod } from './objects-fixture.ts';

export interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** The changes of a mutating webhook to a pod. */
export type Injection = (pod: CreatedPod) => readonly Operation[];

/**
 * A third-party mutating webhook for pods with the label `injected`, called in the order of the configurations' names
 * and as often as the API server decides.
 */
export async function installInjector(
  plane: ControlPlane,
  name: string,
  inject: Injection,
): Promise<() => Promise<void>> {
  const authority = createCertificateAuthority(name);
  const server = createServer(authority.issue(['127.0.0.1']), (request, response) => {
    void json(request).then((review) => {
      const { uid, object } = (review as { request: { uid: string; object: CreatedPod } }).request;
      const patch = Buffer.from(JSON.stringify(inject(object))).toString('base64');
      const answer = { uid, allowed: true, patchType: 'JSONPatch', patch };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }));
    });
  });
  const port = await listenOnLoopback(server);
  const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  await plane.client.create(configurations, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: 'injector.example.com',
        admissionReviewVersions: ['v1'],
        clientConfig: {
          url: `https://127.0.0.1:${port}/`,
          caBundle: Buffer.from(authority.cert).toString('base64'),
        },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        objectSelector: { matchLabels: { injected: 'true' } },
        reinvocationPolicy: 'IfNeeded',
        sideEffects: 'None',
      },
    ],
  });
  return async () => {
    await plane.client.delete(`${configurations}/${name}`);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
}
