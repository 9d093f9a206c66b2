import type { KubeClient } from '../../../kube/client.ts';
import type { CertificateAuthority } from '../../../sandbox/certificates.ts';
import { definitionOfTheCr, installStrategy, KUBEVIRT, kubeVirtCr } from '../../kubevirt/install-strategy-fixture.ts';
import { type KubernetesObject, namespaceOf } from '../../real/control-plane-stage.ts';
import { HANDLER_IMAGE, LAUNCHER_IMAGE } from './images.ts';

/** Objects that virt-operator checks, and kinds of other products. */
const LEFT_OUT = ['SecurityContextConstraints', 'Route', 'ServiceMonitor', 'PrometheusRule', 'Secret', 'Deployment'];

const HANDLER_SERVER = 'kubevirt.io:system:node:virt-handler';
export const HANDLER_CLIENT = 'kubevirt.io:system:client:virt-handler';
const SECRETS: Readonly<Record<string, string>> = {
  'kubevirt-virt-handler-server-certs': HANDLER_SERVER,
  'kubevirt-virt-handler-certs': HANDLER_CLIENT,
  'kubevirt-virt-handler-migration-client-certs': 'kubevirt.io:system:client:migration',
  'kubevirt-virt-handler-vsock-client-certs': 'kubevirt.io:system:client:vsock',
};

export function firstObjects(): KubernetesObject[] {
  return [
    namespaceOf(KUBEVIRT),
    {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'kubevirt-cluster-critical' },
      value: 1_000_000_000,
    },
    ...definitionOfTheCr(),
  ];
}

export async function strategyOf(client: KubeClient, kubeconfig: string): Promise<KubernetesObject[]> {
  const objects = await installStrategy({
    client,
    kubeconfig,
    registry: 'lab',
    config: {
      VirtHandlerImage: HANDLER_IMAGE,
      VirtLauncherImage: LAUNCHER_IMAGE,
      additionalProperties: { ImagePullPolicy: 'Never' },
    },
  });
  return objects.filter(
    ({ kind, metadata }) =>
      !LEFT_OUT.includes(kind) && !/^VirtualMachineCluster/.test(kind) && metadata.name !== 'virt-operator-validator',
  );
}

/** The CR after a complete deployment by virt-operator: software emulation, and local images. */
export const KUBEVIRT_CR = kubeVirtCr({
  configuration: {
    imagePullPolicy: 'Never',
    // The emulation caches the translated code of the guest.
    additionalGuestMemoryOverheadRatio: '2.0',
    developerConfiguration: { useEmulation: true, featureGates: ['CPUManager'] },
    // Seconds, for the same reason.
    migrations: { completionTimeoutPerGiB: 1800, progressTimeout: 900 },
  },
});

export function secretsOf(authority: CertificateAuthority): KubernetesObject[] {
  return Object.entries(SECRETS).map(([name, commonName]) => {
    const { cert, key } = authority.issue([commonName]);
    const encoded = (text: string) => Buffer.from(text).toString('base64');
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: KUBEVIRT },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': encoded(cert), 'tls.key': encoded(key) },
    };
  });
}
