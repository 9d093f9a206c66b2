import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { KubeClient } from '../../kube/client.ts';
import type { ControlPlane, KubernetesObject } from '../real/control-plane-stage.ts';
import { callOf, isWebhookConfiguration, objectsOf } from '../real/install/rendered-fixture.ts';
import { pathOf } from '../support/parts.ts';

export const KUBEVIRT = 'kubevirt';
/** The tag of the images, which nothing pulls. The programs may be of another release. */
export const VERSION = 'v1.9.0';
const program = (name: string) => join(pathOf('kubevirt'), name);
export function definitionOfTheCr(): KubernetesObject[] {
  return objectsOf(execFileSync(program('resource-generator'), ['--type=kv'], { encoding: 'utf8' }));
}
export interface InstallStrategyOptions {
  readonly client: KubeClient;
  readonly kubeconfig: string;
  readonly registry: string;
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
  const webhooks = objects.filter(isWebhookConfiguration).map((object) => callOf(object, port, ca));
  const services = objects
    .filter(({ kind }) => kind === 'APIService')
    .map((one) => {
      const { caBundle: _, ...spec } = one['spec'] as { caBundle?: string; service: object };
      return { ...one, spec: { ...spec, service: { ...spec.service, port }, insecureSkipTLSVerify: true } };
    });
  return [service, ...services, ...webhooks];
}

/** Kinds of other products, images, and what is not needed: the policies bind virt-handler to its node. */
const LEFT_OUT = new Set([
  'Deployment',
  'DaemonSet',
  'Secret',
  'SecurityContextConstraints',
  'Route',
  'ServiceMonitor',
  'PrometheusRule',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'VirtualMachineClusterInstancetype',
  'VirtualMachineClusterPreference',
]);
/** Called only by virt-operator's own objects. */
const OPERATOR_WEBHOOKS = 'virt-operator-validator';
export async function strategyOf({ client, adminKubeconfig: kubeconfig }: ControlPlane): Promise<KubernetesObject[]> {
  const objects = await installStrategy({ client, kubeconfig, registry: 'registry.example' });
  return objects.filter(({ kind, metadata }) => !LEFT_OUT.has(kind) && metadata.name !== OPERATOR_WEBHOOKS);
}
export function kubeVirtCr(spec: object): KubernetesObject & { readonly status: object } {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'KubeVirt',
    metadata: { name: 'kubevirt', namespace: KUBEVIRT },
    spec,
    status: {
      phase: 'Deployed',
      observedKubeVirtVersion: VERSION,
      targetKubeVirtVersion: VERSION,
      operatorVersion: VERSION,
      // Workloads are updated, and CPUs hotplugged, only if the two are equal.
      observedDeploymentID: 'test',
      targetDeploymentID: 'test',
      defaultArchitecture: 'amd64',
    },
  };
}

/** The second number of `v1.8.4` or `v1.10.0-dev`. @throws Error if it is not a version of KubeVirt 1 */
export function minorOf(version: string): number {
  const [, minor] = /^v1\.(\d+)\./.exec(version) ?? [];
  if (minor === undefined) throw new Error(`virt-api reports the version ${version}, which is not of KubeVirt 1`);
  return Number(minor);
}
/** Recorded VMs with a field that older releases refuse, with the first minor version that admits them. */
export const CASES_SINCE: Readonly<Record<string, number>> = {
  // ContainerPath volumes (staging/src/kubevirt.io/api/core/v1/schema.go).
  'containerpath-c4': 8,
};
/** Annotations, labels, devices and volumes of recorded launchers, with the first minor version that adds them. */
export const PARTS_SINCE: Readonly<Record<string, number>> = {
  // pkg/virt-controller/services/template.go
  'kubevirt.io/memory-overhead-bytes': 9,
  'devices.kubevirt.io/tdx': 9,
};
/** Node labels in the selectors of recorded launchers, with their names before a minor version. */
export const RENAMED_LABELS: readonly { readonly since: number; readonly label: string; readonly before: string }[] = [
  // staging/src/kubevirt.io/api/core/v1/types.go
  { since: 8, label: 'kubevirt.io/cpumanager', before: 'cpumanager' },
];
