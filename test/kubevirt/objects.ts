import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { ControlPlane, KubernetesObject } from '../real/control-plane.ts';
import { objectsOf } from '../real/install/rendered.ts';
import { pathOf } from '../support/parts.ts';

export const KUBEVIRT = 'kubevirt';
const VERSION = 'v1.9.0';
/**
 * Kinds of other products, what would run images, and what is not needed: the policies bind virt-handler to its node, and are
 * printed with apiVersion v1, which virt-operator never sends.
 */
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

const program = (name: string) => join(pathOf('kubevirt'), name);

/** The definition of KubeVirt's own CR, as KubeVirt's generator prints it. */
export function definitionOfTheCr(): KubernetesObject[] {
  return objectsOf(execFileSync(program('resource-generator'), ['--type=kv'], { encoding: 'utf8' }));
}

/**
 * What virt-operator installs: definitions, accounts with their rights, webhook configurations and the APIService. It writes
 * them into a ConfigMap, as its own job does at every installation.
 */
export async function installStrategy(plane: ControlPlane): Promise<KubernetesObject[]> {
  const image = `registry.example/virt-operator:${VERSION}`;
  const config = { namespace: KUBEVIRT, registry: 'registry.example', kubeVirtVersion: VERSION };
  const args = ['--dump-install-strategy', '--kubeconfig', plane.adminKubeconfig];
  const env = { ...process.env, VIRT_OPERATOR_IMAGE: image, TARGET_DEPLOYMENT_CONFIG: JSON.stringify(config) };
  execFileSync(program('virt-operator'), args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const labels = { query: { labelSelector: 'kubevirt.io/install-strategy' } };
  const { items } = (await plane.client.get(`/api/v1/namespaces/${KUBEVIRT}/configmaps`, labels)) as {
    items: { data: { manifests: string } }[];
  };
  const [strategy] = items;
  if (strategy === undefined) throw new Error('virt-operator wrote no install strategy');
  const yaml = gunzipSync(Buffer.from(strategy.data.manifests, 'base64')).toString('utf8');
  return objectsOf(yaml).filter(({ kind }) => !LEFT_OUT.has(kind));
}

/** KubeVirt's CR with the feature gates that the cases need, as it is once virt-operator has deployed everything. */
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
      // Workloads are updated, and CPUs plugged in, only where the two are the same.
      observedDeploymentID: 'test',
      targetDeploymentID: 'test',
      defaultArchitecture: 'amd64',
    },
  };
}
