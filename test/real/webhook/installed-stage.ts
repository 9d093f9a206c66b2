import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { parseConfiguredContext } from '../../../model/networks/context.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { parseWebhookConfig } from '../../../webhook/config.ts';
import { createWebhook } from '../../../webhook/daemon.ts';
import { silent } from '../../support/logger.ts';
import { freePort } from '../../support/processes.ts';
import { until } from '../../support/until.ts';
import type { ControlPlane } from '../control-plane-stage.ts';
import { callOf, isWebhookConfiguration, untilCalled } from '../demo/webhook-configurations-fixture.ts';
import { objectsOf, render } from '../install/rendered-fixture.ts';
import { installPolicies, type PoliciesOptions } from './policies-stage.ts';

const SYSTEM = 'plumbline-system';

/** A real API server with Plumbline's roles and policies and its webhook, with its own service account. */
export type InstalledWebhook = Awaited<ReturnType<typeof installWebhook>>;

export async function installWebhook(options: PoliciesOptions = {}) {
  const policies = await installPolicies(options);
  const { plane } = policies;
  const authority = createCertificateAuthority('plumbline-webhook');
  let webhook: Awaited<ReturnType<typeof startWebhook>> | undefined;
  /** Stops only the webhook, as if it were down. */
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

/** The webhook configurations of the base with components. */
export function configurations(components: readonly string[] = []) {
  return objectsOf(render('base', components)).filter(isWebhookConfiguration);
}

/** The webhook in this process, with the shipped account. Resolves when it is ready. */
export async function startWebhook(plane: ControlPlane, pair: { cert: string; key: string }) {
  const file = (name: string) => join(plane.directory, name);
  const [certFile, keyFile] = [file('webhook.crt'), file('webhook.key')];
  await writeFile(certFile, pair.cert);
  await writeFile(keyFile, pair.key, { mode: 0o600 });
  const token = await plane.serviceAccountToken(SYSTEM, 'plumbline-webhook');
  const [port, probePort] = [await freePort(), await freePort()];
  const config = parseWebhookConfig([
    ...['--host', '127.0.0.1', '--port', String(port), '--probe-host', '127.0.0.1', '--probe-port', String(probePort)],
    ...['--cert-file', certFile, '--key-file', keyFile],
    ...['--kubeconfig', await plane.kubeconfig('webhook', token)],
  ]);
  const daemon = await createWebhook(config, parseConfiguredContext(undefined), silent);
  await daemon.start();
  await until('the webhook to be ready', async () => (await fetch(`http://127.0.0.1:${probePort}/readyz`)).ok);
  return { port, stop: () => daemon.stop() };
}

/**
 * Switches the webhooks on, as the webhook itself does after it was reached. To be called before its configurations
 * exist.
 */
export async function switchOn({ client }: ControlPlane): Promise<void> {
  const subjects = [{ kind: 'ServiceAccount', name: WEBHOOK, namespace: SYSTEM }];
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}/rolebindings/${WEBHOOK_REQUIRED}`;
  await client.patch(path, 'application/merge-patch+json', { subjects });
}
