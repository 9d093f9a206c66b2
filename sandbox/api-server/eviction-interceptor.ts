import { at, type Pod, type VirtualMachineInstance } from '../objects.ts';
import { ApiError } from './errors.ts';

const WEBHOOK = 'virt-launcher-eviction-interceptor.kubevirt.io';

/**
 * Judges the eviction of a pod as virt-api's webhook for pods/eviction does: a launcher whose VM is to migrate on an eviction
 * stays, and so does one whose guest has never started, since it cannot migrate. The migration itself is not begun here.
 * Source: KubeVirt, pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go
 * @param findVmi of the pod's namespace
 * @throws ApiError 429
 */
export function interceptEviction(pod: Pod, findVmi: (name: string) => VirtualMachineInstance | undefined): void {
  const { labels = {}, annotations = {} } = pod.metadata;
  const name = annotations['kubevirt.io/domain'];
  const hasEnded = ['Failed', 'Succeeded'].includes(pod.status?.phase ?? '');
  if (labels['kubevirt.io'] !== 'virt-launcher' || hasEnded || name === undefined) return;
  const vmi = findVmi(name);
  if (vmi === undefined) throw denied(`kubevirt failed getting the vmi: virtualmachineinstances "${name}" not found`);
  const strategy = at(vmi, 'spec', 'evictionStrategy');
  const isMigratable = vmi.status?.conditions?.some(
    ({ type, status }) => type === 'LiveMigratable' && status === 'True',
  );
  if (strategy === 'LiveMigrate' && !isMigratable) {
    throw denied(`VMI ${name} is configured with an eviction strategy but is not live-migratable`);
  }
  const stays =
    strategy === 'LiveMigrate' || strategy === 'External' || (strategy === 'LiveMigrateIfPossible' && isMigratable);
  if (!stays) return;
  if (vmi.status?.nodeName !== pod.spec.nodeName) throw denied('Eviction request for target Pod');
  throw denied(`Eviction triggered evacuation of VMI "${vmi.metadata.namespace}/${name}"`);
}

const denied = (why: string) =>
  new ApiError(429, 'TooManyRequests', `admission webhook "${WEBHOOK}" denied the request: ${why}`);
