import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane-stage.ts';

export function kubectlEnvironment(kubeconfig: string): NodeJS.ProcessEnv {
  const PATH = `${dirname(pathOf('kubectl'))}:${process.env['PATH'] ?? ''}`;
  return { ...process.env, KUBECONFIG: kubeconfig, PATH };
}

/** Runs kubectl as the administrator. */
export function kubectlOf({ adminKubeconfig }: Pick<ControlPlane, 'adminKubeconfig'>) {
  const env = kubectlEnvironment(adminKubeconfig);
  return (args: readonly string[], input = '') => {
    const { status, stderr } = spawnSync(pathOf('kubectl'), args, { input, env, encoding: 'utf8' });
    return { status: status ?? 1, said: stderr.trim() };
  };
}

/** Runs the script of the development overlay. */
export function createCertificates({ adminKubeconfig }: ControlPlane, ...args: readonly string[]): void {
  const script = join(root, 'manifests/overlays/development/certificates.sh');
  execFileSync(script, args, { env: kubectlEnvironment(adminKubeconfig), stdio: ['ignore', 'ignore', 'pipe'] });
}

export const secretPath = (name: string) => `/api/v1/namespaces/plumbline-system/secrets/${name}`;

export async function readSecret({ client }: ControlPlane, name: string): Promise<(field: string) => string> {
  const { data } = (await client.get(secretPath(name))) as {
    readonly data: Readonly<Record<string, string>>;
  };
  return (field) => Buffer.from(data[field] ?? '', 'base64').toString();
}

export function render(folder: string, components: readonly string[] = []): string {
  const kubectl = (directory: string) =>
    execFileSync(pathOf('kubectl'), ['kustomize', directory], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  if (components.length === 0) return kubectl(join(root, 'manifests', folder));
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-manifests-'));
  try {
    cpSync(join(root, 'manifests'), join(directory, 'manifests'), { recursive: true });
    const paths = components.map((name) => `manifests/${name}`);
    const kustomization = { resources: [`manifests/${folder}`], components: paths };
    writeFileSync(join(directory, 'kustomization.yaml'), stringify(kustomization));
    return kubectl(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export function objectsOf(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml).flatMap((document) => (document.toJS() as KubernetesObject | null) ?? []);
}

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly service: { readonly path: string } } }[];
}

export function isWebhookConfiguration(object: KubernetesObject): object is WebhookConfiguration {
  return object.kind.endsWith('WebhookConfiguration');
}

export function callOf({ webhooks, ...rest }: WebhookConfiguration, port: number, ca: string): KubernetesObject {
  const caBundle = Buffer.from(ca).toString('base64');
  const called = webhooks.map(({ clientConfig, ...webhook }) => ({
    ...webhook,
    clientConfig: { url: `https://127.0.0.1:${port}${clientConfig.service.path}`, caBundle },
  }));
  return { ...rest, webhooks: called };
}

/** The API server applies configurations a moment after they are stored: waits until a pod is padded. */
export async function untilCalled({ client }: Pick<ControlPlane, 'client'>): Promise<void> {
  const resources = { limits: { cpu: '3', memory: '1Gi' } };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'asks-', annotations: { 'plumbline.dev/align': 'whole-cores' } },
    spec: { containers: [{ name: 'c', image: 'none', resources }] },
  };
  await until('the webhook to be called', async () => {
    const answer = (await client.create('/api/v1/namespaces/default/pods', pod, {
      query: { dryRun: 'All' },
    })) as {
      spec: { containers: { resources: { limits: { cpu: string } } }[] };
    };
    return answer.spec.containers[0]?.resources.limits.cpu === '4';
  });
}
