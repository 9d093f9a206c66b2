import type { ControlPlane, KubernetesObject } from '../real/control-plane.ts';
import { installStrategy, KUBEVIRT, VERSION } from './install-strategy.ts';

/**
 * Kinds of other products, objects that would run images, and unnecessary ones: the policies bind virt-handler to its
 * node.
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

/** Called only by virt-operator's own objects. */
const OPERATOR_WEBHOOKS = 'virt-operator-validator';

/** The objects that virt-operator installs, without the excluded ones. */
export async function strategyOf({ client, adminKubeconfig: kubeconfig }: ControlPlane): Promise<KubernetesObject[]> {
  const objects = await installStrategy({ client, kubeconfig, registry: 'registry.example' });
  return objects.filter(({ kind, metadata }) => !LEFT_OUT.has(kind) && metadata.name !== OPERATOR_WEBHOOKS);
}

/** KubeVirt's CR with the feature gates of the cases, as after a complete deployment by virt-operator. */
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
