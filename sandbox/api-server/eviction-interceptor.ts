import { at, type Pod, type VirtualMachineInstance } from '../objects.ts';
import { ApiError } from './errors.ts';

export const EVICTION_WEBHOOK = 'virt-launcher-eviction-interceptor.kubevirt.io';

/**
 * Decides about the eviction of a pod as virt-api's webhook for pods/eviction does. It denies the eviction of a
 * launcher whose VM migrates on eviction, and of one whose guest has never started, because that cannot migrate. It
 * does not start the migration.
 *
 * Source: KubeVirt, pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go
 * @param findVmi finds a VMI in the pod's namespace
 * @returns why the eviction is denied, with status 429; undefined if it is not
 */
export function evictionDenial(
  pod: Pod,
  findVmi: (name: string) => VirtualMachineInstance | undefined,
): string | undefined {
  const { labels = {}, annotations = {} } = pod.metadata;
  const name = annotations['kubevirt.io/domain'];
  const hasEnded = ['Failed', 'Succeeded'].includes(pod.status?.phase ?? '');
  if (labels['kubevirt.io'] !== 'virt-launcher' || hasEnded || name === undefined) return undefined;
  const vmi = findVmi(name);
  if (vmi === undefined) return `kubevirt failed getting the vmi: virtualmachineinstances "${name}" not found`;
  const strategy = at(vmi, 'spec', 'evictionStrategy');
  const isMigratable = vmi.status?.conditions?.some(
    ({ type, status }) => type === 'LiveMigratable' && status === 'True',
  );
  if (strategy === 'LiveMigrate' && !isMigratable) {
    return `VMI ${name} is configured with an eviction strategy but is not live-migratable`;
  }
  const stays =
    strategy === 'LiveMigrate' || strategy === 'External' || (strategy === 'LiveMigrateIfPossible' && isMigratable);
  if (!stays) return undefined;
  if (vmi.status?.nodeName !== pod.spec.nodeName) return 'Eviction request for target Pod';
  return `Eviction triggered evacuation of VMI "${vmi.metadata.namespace}/${name}"`;
}

/** The same decision as an error of the API server. @throws ApiError 429 */
export function interceptEviction(pod: Pod, findVmi: (name: string) => VirtualMachineInstance | undefined): void {
  const why = evictionDenial(pod, findVmi);
  if (why === undefined) return;
  throw new ApiError(429, 'TooManyRequests', `admission webhook "${EVICTION_WEBHOOK}" denied the request: ${why}`);
}
