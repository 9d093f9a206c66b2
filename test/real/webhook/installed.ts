import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { parseConfiguredContext } from '../../../model/networks/context.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { kubeconfig } from '../../../sandbox/cluster/identities.ts';
import { parseWebhookConfig, type WebhookConfig } from '../../../webhook/config.ts';
import { createWebhook } from '../../../webhook/daemon.ts';
import { silent } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, type KubernetesObject, startControlPlane } from '../control-plane.ts';
import { objectsOf, render } from '../install/rendered.ts';
import { freePort } from '../processes.ts';
import { FOREIGN_DEFINITIONS } from './crds.ts';

const SYSTEM = 'plumbline-system';
const CONFIGURATIONS = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'];
/** Kinds that only cert-manager adds. */
const FOREIGN = ['Certificate', 'Issuer'];

/** A real API server with Plumbline's base and its webhook, with its own service account. */
export interface InstalledWebhook {
  readonly plane: ControlPlane;
  /** The authority of the serving certificate in `certFile` and `keyFile`. */
  readonly authority: CertificateAuthority;
  readonly certFile: string;
  readonly keyFile: string;
  /** Stops only the webhook, as if it were down. */
  stopWebhook(): Promise<void>;
  stop(): Promise<void>;
}

interface Webhook {
  readonly clientConfig: { readonly service: { readonly path: string } };
  /** All except the one that switches the others on. */
  readonly namespaceSelector?: { readonly matchExpressions: readonly { readonly values: readonly string[] }[] };
}

export interface Configuration extends KubernetesObject {
  readonly webhooks: readonly Webhook[];
}

export interface InstallOptions {
  /**
   * More webhooks with their own settings: each serves one namespace, whose name is the key and which the shipped one
   * skips.
   */
  readonly variants?: Readonly<Record<string, Variant>>;
}

export interface Variant {
  readonly args?: readonly string[];
  /** The target of its requests instead of the API server. */
  readonly server?: (plane: ControlPlane) => Promise<Server>;
}

/** A server between a webhook and the API server. */
export interface Server {
  readonly url: string;
  readonly ca: string;
  stop(): Promise<void>;
}

export async function installWebhook({ variants = {} }: InstallOptions = {}): Promise<InstalledWebhook> {
  const plane = await startControlPlane();
  const stops: (() => Promise<void>)[] = [];
  try {
    const objects = baseObjects();
    await plane.create(...FOREIGN_DEFINITIONS, ...objects.filter((object) => !isConfiguration(object)));
    const configurations = objects.filter(isConfiguration);
    const authority = createCertificateAuthority('plumbline-webhook');
    const webhook = await startWebhook(plane, 'webhook', authority);
    stops.push(webhook.stop);
    const elsewhere = Object.keys(variants);
    await plane.create(...configurations.map((one) => reachable(one, webhook.port, authority.cert, { elsewhere })));
    for (const [namespace, variant] of Object.entries(variants)) {
      await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
      const one = await startWebhook(plane, namespace, authority, variant);
      stops.push(one.stop);
      // As in docs/tasks/opt-in.md, this flag belongs to a component.
      const everyLauncher = variant.args?.includes('--alignment') === true;
      const sent = everyLauncher ? baseObjects(['components/align-all']).filter(isConfiguration) : configurations;
      await plane.create(...sent.map((found) => reachable(found, one.port, authority.cert, { namespace })));
    }
    await untilPoliciesHold(plane, ['default', ...elsewhere]);
    return {
      plane,
      authority,
      certFile: webhook.certFile,
      keyFile: webhook.keyFile,
      async stopWebhook() {
        await webhook.stop();
        stops.splice(stops.indexOf(webhook.stop), 1);
      },
      async stop() {
        await Promise.all(stops.map((stop) => stop()));
        await plane.stop();
      },
    };
  } catch (error) {
    await Promise.all(stops.map((stop) => stop()));
    await plane.stop();
    throw error;
  }
}

/** The base with components, without the objects of cert-manager. */
export function baseObjects(components: readonly string[] = []): KubernetesObject[] {
  return objectsOf(render('base', components)).filter(({ kind }) => !FOREIGN.includes(kind));
}

export function isConfiguration(object: KubernetesObject): object is Configuration {
  return CONFIGURATIONS.includes(object.kind);
}

async function startWebhook(
  plane: ControlPlane,
  name: string,
  authority: CertificateAuthority,
  { args = [], server }: Variant = {},
) {
  const file = (extension: string) => join(plane.directory, `${name}.${extension}`);
  const [certFile, keyFile] = [file('crt'), file('key')];
  const { cert, key } = authority.issue(['127.0.0.1']);
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  const token = await plane.serviceAccountToken(SYSTEM, 'plumbline-webhook');
  const [port, probePort] = [await freePort(), await freePort()];
  const between = await server?.(plane);
  const { url, ca } = between ?? plane;
  await writeFile(file('kubeconfig'), kubeconfig({ server: url, ca, token }));
  const config: WebhookConfig = parseWebhookConfig([
    ...['--host', '127.0.0.1', '--port', String(port), '--probe-host', '127.0.0.1', '--probe-port', String(probePort)],
    ...['--cert-file', certFile, '--key-file', keyFile],
    ...['--kubeconfig', file('kubeconfig')],
    ...args,
  ]);
  const daemon = await createWebhook(config, parseConfiguredContext(undefined), silent);
  await daemon.start();
  await until('the webhook to be ready', async () => {
    const response = await fetch(`http://127.0.0.1:${probePort}/readyz`);
    return response.ok;
  });
  const stop = async () => {
    await daemon.stop();
    await between?.stop();
  };
  return { port, certFile, keyFile, stop };
}

/** The shipped configuration with a port of this machine instead of a Service. */
export function reachable(
  { webhooks, ...rest }: Configuration,
  port: number,
  ca: string,
  where: { readonly namespace: string } | { readonly elsewhere: readonly string[] },
): KubernetesObject {
  const caBundle = Buffer.from(ca).toString('base64');
  const key = 'kubernetes.io/metadata.name';
  const pointed = webhooks.map(({ clientConfig: { service }, namespaceSelector, ...webhook }) => {
    const clientConfig = { url: `https://127.0.0.1:${port}${service.path}`, caBundle };
    if (namespaceSelector === undefined) return { ...webhook, clientConfig };
    const [excluded] = namespaceSelector.matchExpressions;
    const values = 'elsewhere' in where ? [...(excluded?.values ?? []), ...where.elsewhere] : [where.namespace];
    const operator = 'elsewhere' in where ? 'NotIn' : 'In';
    return {
      ...webhook,
      clientConfig,
      namespaceSelector: { matchExpressions: [{ key, operator, values }] },
    };
  });
  const name = 'namespace' in where ? `${rest.metadata.name}-${where.namespace}` : rest.metadata.name;
  return { ...rest, metadata: { ...rest.metadata, name }, webhooks: pointed };
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

/** The API server applies configurations and policies a moment after they are stored. */
async function untilPoliciesHold(plane: ControlPlane, namespaces: readonly string[]): Promise<void> {
  const claims = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'claims-', annotations: { 'plumbline.dev/decision': '{}' } },
    spec: { containers: [{ name: 'c', image: 'none' }] },
  };
  const asks = {
    ...claims,
    metadata: { generateName: 'asks-', annotations: { 'plumbline.dev/align': 'whole-cores' } },
    spec: { containers: [{ name: 'c', image: 'none', resources: { limits: { cpu: '3', memory: '1Gi' } } }] },
  };
  const dryRun = async (pod: object, namespace: string) =>
    (await plane.client.create(`/api/v1/namespaces/${namespace}/pods`, pod, { query: { dryRun: 'All' } })) as {
      spec: { containers: { resources: { limits: { cpu: string } } }[] };
    };
  await until('the policies to be enforced', () =>
    dryRun(claims, 'default').then(
      () => false,
      (error: Error) => /decision/.test(error.message),
    ),
  );
  for (const namespace of namespaces) {
    await until(
      `the webhooks of ${namespace} to be called`,
      async () => (await dryRun(asks, namespace)).spec.containers[0]?.resources.limits.cpu === '4',
    );
  }
}
