import type { KubeClient } from '../../../kube/client.ts';
import type { SeenPod } from './stage.ts';

export interface MaskedLauncherOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** plumbline.dev/fix-cpu-mismatch */
  readonly fix?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

/** Creates the launcher of a VM on shared CPUs with a CPU mask. */
export async function launchMasked(
  client: KubeClient,
  name: string,
  mask: string,
  { labels = {}, fix, nodeSelector }: MaskedLauncherOptions = {},
): Promise<void> {
  const resources = { requests: { cpu: '200m' }, limits: { 'devices.kubevirt.io/kvm': '1' } };
  await client.create('/api/v1/namespaces/default/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: { 'kubevirt.io': 'virt-launcher', ...labels },
      annotations: {
        'plumbline.dev/cpu-mask': mask,
        ...(fix !== undefined && { 'plumbline.dev/fix-cpu-mismatch': fix }),
      },
    },
    spec: {
      terminationGracePeriodSeconds: 0,
      ...(nodeSelector && { nodeSelector }),
      containers: [{ name: 'compute', image: 'none', resources }],
    },
  });
}

/** The scheduler's message about a waiting pod; '' before the first one. */
export function refusalOf({ status }: SeenPod): string {
  return status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '';
}
