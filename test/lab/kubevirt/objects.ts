import { execFileSync } from 'node:child_process';
import { gunzipSync } from 'node:zlib';
import type { KubeClient } from '../../../kube/client.ts';
import type { CertificateAuthority } from '../../../sandbox/certificates.ts';
import type { KubernetesObject } from '../../real/control-plane.ts';
import { objectsOf } from '../../real/install/rendered.ts';
import { kubeVirtAsset } from './assets.ts';
import { HANDLER_IMAGE, LAUNCHER_IMAGE } from './images.ts';

/** Its namespace. */
export const SYSTEM = 'kubevirt';
const VERSION = 'v1.9.0';
/** What virt-operator checks, and kinds of other products. */
const LEFT_OUT = ['SecurityContextConstraints', 'Route', 'ServiceMonitor', 'PrometheusRule', 'Secret', 'Deployment'];

/** The names by which KubeVirt's parts know each other: of virt-handler's server, and of virt-api where it calls that. */
const HANDLER_SERVER = 'kubevirt.io:system:node:virt-handler';
export const HANDLER_CLIENT = 'kubevirt.io:system:client:virt-handler';
/** The secrets of the DaemonSet, and the common name in each. */
const SECRETS: Readonly<Record<string, string>> = {
  'kubevirt-virt-handler-server-certs': HANDLER_SERVER,
  'kubevirt-virt-handler-certs': HANDLER_CLIENT,
  'kubevirt-virt-handler-migration-client-certs': 'kubevirt.io:system:client:migration',
  'kubevirt-virt-handler-vsock-client-certs': 'kubevirt.io:system:client:vsock',
};

/** What there is before virt-operator: namespace, priority class, and the definition of KubeVirt's own CR. */
export function firstObjects(): KubernetesObject[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } },
    {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'kubevirt-cluster-critical' },
      value: 1_000_000_000,
    },
    ...objectsOf(execFileSync(kubeVirtAsset('resource-generator'), ['--type=kv'], { encoding: 'utf8' })),
  ];
}

/**
 * What virt-operator installs: definitions, accounts with their rights, the DaemonSet, webhook configurations and the
 * APIService. It writes them into a ConfigMap, as its own job does at every installation.
 */
export async function installStrategy(client: KubeClient, kubeconfig: string): Promise<KubernetesObject[]> {
  const config = {
    ...{ namespace: SYSTEM, registry: 'lab', kubeVirtVersion: VERSION },
    ...{ VirtHandlerImage: HANDLER_IMAGE, VirtLauncherImage: LAUNCHER_IMAGE },
    additionalProperties: { ImagePullPolicy: 'Never' },
  };
  const env = {
    ...process.env,
    VIRT_OPERATOR_IMAGE: `lab/virt-operator:${VERSION}`,
    TARGET_DEPLOYMENT_CONFIG: JSON.stringify(config),
  };
  const path = `/api/v1/namespaces/${SYSTEM}/configmaps`;
  const args = ['--dump-install-strategy', '--kubeconfig', kubeconfig];
  execFileSync(kubeVirtAsset('virt-operator'), args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const labels = { query: { labelSelector: 'kubevirt.io/install-strategy' } };
  const { items } = (await client.get(path, labels)) as { items: { data: { manifests: string } }[] };
  const manifests = items.at(-1)?.data.manifests;
  if (manifests === undefined) throw new Error('virt-operator wrote no install strategy');
  const yaml = gunzipSync(Buffer.from(manifests, 'base64')).toString('utf8');
  return objectsOf(yaml)
    .filter(
      ({ kind, metadata }) =>
        !LEFT_OUT.includes(kind) && !/^VirtualMachineCluster/.test(kind) && metadata.name !== 'virt-operator-validator',
    )
    .map((object) => ({ ...object, apiVersion: groupOf(object) }));
}

/** virt-operator creates its policies by a client of their group, and prints them without it. */
const groupOf = ({ apiVersion, kind }: KubernetesObject) =>
  kind.startsWith('ValidatingAdmissionPolicy') ? 'admissionregistration.k8s.io/v1' : apiVersion;

/** The CR, as it is once virt-operator has deployed everything: software emulation, and images that are there. */
export const KUBEVIRT_CR = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'KubeVirt',
  metadata: { name: 'kubevirt', namespace: SYSTEM },
  spec: {
    configuration: {
      imagePullPolicy: 'Never',
      // Emulation keeps what it has translated of the guest's code.
      additionalGuestMemoryOverheadRatio: '2.0',
      developerConfiguration: { useEmulation: true, featureGates: ['CPUManager'] },
    },
  },
};
export const KUBEVIRT_STATUS = {
  ...{ phase: 'Deployed', observedKubeVirtVersion: VERSION, targetKubeVirtVersion: VERSION },
  ...{ operatorVersion: VERSION, observedDeploymentID: 'lab' },
};

/** The certificates of the DaemonSet. */
export function secretsOf(authority: CertificateAuthority): KubernetesObject[] {
  return Object.entries(SECRETS).map(([name, commonName]) => {
    const { cert, key } = authority.issue([commonName]);
    const encoded = (text: string) => Buffer.from(text).toString('base64');
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: SYSTEM },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': encoded(cert), 'tls.key': encoded(key) },
    };
  });
}
