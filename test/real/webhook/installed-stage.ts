import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { parseConfiguredContext } from '../../../model/networks/context.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { parseWebhookConfig } from '../../../webhook/config.ts';
import { createWebhook } from '../../../webhook/daemon.ts';
import { serveJson } from '../../support/json-server.ts';
import { silent } from '../../support/logger.ts';
import { freePort } from '../../support/processes.ts';
import { until } from '../../support/until.ts';
import type { ControlPlane } from '../control-plane-stage.ts';
import { callOf, isWebhookConfiguration, objectsOf, render, untilCalled } from '../install/rendered-fixture.ts';
import type { CreatedPod } from './objects-fixture.ts';
import { installPolicies, type PoliciesOptions } from './policies-stage.ts';

const SYSTEM = 'plumbline-system';

export type InstalledWebhook = Awaited<ReturnType<typeof installWebhook>>;

export async function installWebhook(options: PoliciesOptions = {}) {
  const policies = await installPolicies(options);
  const { plane } = policies;
  const authority = createCertificateAuthority('plumbline-webhook');
  let webhook: Awaited<ReturnType<typeof startWebhook>> | undefined;
  const stopWebhook = async () => {
    await webhook?.stop();
    webhook = undefined;
  };
  const stop = async () => {
    await stopWebhook();
    await policies.stop();
  };
  try {
    webhook = await startWebhook(plane, authority.issue(['127.0.0.1']));
    const { port } = webhook;
    await plane.create(...configurations().map((one) => callOf(one, port, authority.cert)));
    await untilCalled(plane);
    return { ...policies, stopWebhook, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export function configurations(components: readonly string[] = []) {
  return objectsOf(render('base', components)).filter(isWebhookConfiguration);
}

export async function startWebhook(plane: ControlPlane, pair: { cert: string; key: string }) {
  const file = (name: string) => join(plane.directory, name);
  const [certFile, keyFile] = [file('webhook.crt'), file('webhook.key')];
  await writeFile(certFile, pair.cert);
  await writeFile(keyFile, pair.key, { mode: 0o600 });
  const [port, probePort] = [await freePort(), await freePort()];
  const config = parseWebhookConfig([
    ...['--host', '127.0.0.1', '--port', String(port), '--probe-host', '127.0.0.1', '--probe-port', String(probePort)],
    ...['--cert-file', certFile, '--key-file', keyFile],
    ...['--kubeconfig', await plane.accountKubeconfig('webhook', SYSTEM, WEBHOOK)],
  ]);
  const daemon = await createWebhook(config, parseConfiguredContext(undefined), silent);
  await daemon.start();
  await until('the webhook to be ready', async () => (await fetch(`http://127.0.0.1:${probePort}/readyz`)).ok);
  return { port, stop: () => daemon.stop() };
}

const SWITCH = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}/rolebindings/${WEBHOOK_REQUIRED}`;

/** As the webhook does after it was reached. To be called before its configurations exist. */
export async function switchOn({ client }: ControlPlane): Promise<void> {
  const subjects = [{ kind: 'ServiceAccount', name: WEBHOOK, namespace: SYSTEM }];
  await client.patch(SWITCH, 'application/merge-patch+json', { subjects });
}

export async function isSwitchedOn({ client }: ControlPlane): Promise<boolean> {
  const { subjects = [] } = (await client.get(SWITCH)) as { subjects?: readonly object[] };
  return subjects.length > 0;
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

export type Injection = (pod: CreatedPod) => readonly Operation[];

/** A mutating webhook for pods labelled `injected`, called in name order, as often as the API server decides. */
export async function installInjector(
  plane: ControlPlane,
  name: string,
  inject: Injection,
): Promise<() => Promise<void>> {
  const authority = createCertificateAuthority(name);
  const review = async (request: IncomingMessage) => {
    const { uid, object } = ((await json(request)) as { request: { uid: string; object: CreatedPod } }).request;
    const patch = Buffer.from(JSON.stringify(inject(object))).toString('base64');
    const response = { uid, allowed: true, patchType: 'JSONPatch', patch };
    return { body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } };
  };
  const server = await serveJson(review, authority.issue(['127.0.0.1']));
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
          url: `https://127.0.0.1:${server.port}/`,
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
    await server.stop();
  };
}
