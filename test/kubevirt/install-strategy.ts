import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { KubeClient } from '../../kube/client.ts';
import type { KubernetesObject } from '../real/control-plane.ts';
import { callOf, isWebhookConfiguration } from '../real/demo/webhook-configurations.ts';
import { objectsOf } from '../real/install/rendered.ts';
import { pathOf } from '../support/parts.ts';

/** The namespace of KubeVirt. */
export const KUBEVIRT = 'kubevirt';
/** The tag of the images, which nothing pulls. The programs may be of another release. */
export const VERSION = 'v1.9.0';

const program = (name: string) => join(pathOf('kubevirt'), name);

/** The definition of KubeVirt's own CR, from KubeVirt's generator. */
export function definitionOfTheCr(): KubernetesObject[] {
  return objectsOf(execFileSync(program('resource-generator'), ['--type=kv'], { encoding: 'utf8' }));
}

export interface InstallStrategyOptions {
  readonly client: KubeClient;
  readonly kubeconfig: string;
  /** The registry of the images. */
  readonly registry: string;
  /** Additional deployment configuration of virt-operator. */
  readonly config?: object;
}

/**
 * All objects that virt-operator installs: definitions, accounts with their permissions, Deployments and the DaemonSet,
 * webhook configurations, policies and the APIService. It writes them into a ConfigMap, like its own job at every
 * installation.
 */
export async function installStrategy(options: InstallStrategyOptions): Promise<KubernetesObject[]> {
  const { client, kubeconfig, registry } = options;
  const config = { namespace: KUBEVIRT, registry, kubeVirtVersion: VERSION, ...options.config };
  const env = {
    ...process.env,
    VIRT_OPERATOR_IMAGE: `${registry}/virt-operator:${VERSION}`,
    TARGET_DEPLOYMENT_CONFIG: JSON.stringify(config),
  };
  const args = ['--dump-install-strategy', '--kubeconfig', kubeconfig];
  execFileSync(program('virt-operator'), args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const labels = { query: { labelSelector: 'kubevirt.io/install-strategy' } };
  const { items } = (await client.get(`/api/v1/namespaces/${KUBEVIRT}/configmaps`, labels)) as {
    items: { data: { manifests: string } }[];
  };
  const manifests = items.at(-1)?.data.manifests;
  if (manifests === undefined) throw new Error('virt-operator wrote no install strategy');
  const yaml = gunzipSync(Buffer.from(manifests, 'base64')).toString('utf8');
  return objectsOf(yaml).map((object) => ({ ...object, apiVersion: groupOf(object) }));
}

/** virt-operator creates its policies with a client of their group, and prints them without it. */
const groupOf = ({ apiVersion, kind }: KubernetesObject) =>
  kind.startsWith('ValidatingAdmissionPolicy') ? 'admissionregistration.k8s.io/v1' : apiVersion;

/** KubeVirt's webhooks and its APIService, with a port of this machine instead of virt-api's Service. */
export function reachable(objects: readonly KubernetesObject[], port: number, ca: string): KubernetesObject[] {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'virt-api', namespace: KUBEVIRT },
    spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
  };
  const webhooks = objects.filter(isWebhookConfiguration).map((one) => callOf(one, port, ca));
  const services = objects
    .filter(({ kind }) => kind === 'APIService')
    .map((one) => {
      const { caBundle: _, ...spec } = one['spec'] as { caBundle?: string; service: object };
      return { ...one, spec: { ...spec, service: { ...spec.service, port }, insecureSkipTLSVerify: true } };
    });
  return [service, ...services, ...webhooks];
}
