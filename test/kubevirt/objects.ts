import type { ControlPlane, KubernetesObject } from '../real/control-plane.ts';
import { installStrategy, KUBEVIRT, VERSION } from './install-strategy.ts';

/**
 * Kinds of other products, what would run images, and what is not needed: the policies bind virt-handler to
 * its node.
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

/** Called by virt-operator's own objects alone. */
const OPERATOR_WEBHOOKS = 'virt-operator-validator';

/** What virt-operator installs, less what is left out. */
export async function strategyOf({ client, adminKubeconfig: kubeconfig }: ControlPlane): Promise<KubernetesObject[]> {
  const objects = await installStrategy({ client, kubeconfig, registry: 'registry.example' });
  return objects.filter(({ kind, metadata }) => !LEFT_OUT.has(kind) && metadata.name !== OPERATOR_WEBHOOKS);
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
