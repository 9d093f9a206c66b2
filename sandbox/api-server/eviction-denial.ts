import { at, type KubePod, type KubeVmi } from '../objects.ts';
import { ApiError } from './errors.ts';

const EVICTION_WEBHOOK = 'virt-launcher-eviction-interceptor.kubevirt.io';

/** `evacuates`: the VMI that is to leave its node first. */
interface EvictionDenial {
  readonly why: string;
  readonly evacuates?: string;
}

/** Source: KubeVirt, pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go */
export function evictionDenial(
  pod: KubePod,
  findVmi: (name: string) => KubeVmi | undefined,
): EvictionDenial | undefined {
  const { labels = {}, annotations = {} } = pod.metadata;
  const name = annotations['kubevirt.io/domain'];
  const hasEnded = ['Failed', 'Succeeded'].includes(pod.status?.phase ?? '');
  if (labels['kubevirt.io'] !== 'virt-launcher' || hasEnded || name === undefined) return undefined;
  const vmi = findVmi(name);
  if (vmi === undefined) return { why: `kubevirt failed getting the vmi: virtualmachineinstances "${name}" not found` };
  const strategy = at(vmi, 'spec', 'evictionStrategy');
  const isMigratable = vmi.status?.conditions?.some(
    ({ type, status }) => type === 'LiveMigratable' && status === 'True',
  );
  if (strategy === 'LiveMigrate' && !isMigratable) {
    return { why: `VMI ${name} is configured with an eviction strategy but is not live-migratable` };
  }
  const stays =
    strategy === 'LiveMigrate' || strategy === 'External' || (strategy === 'LiveMigrateIfPossible' && isMigratable);
  if (!stays) return undefined;
  if (vmi.status?.nodeName !== pod.spec.nodeName) return { why: 'Eviction request for target Pod' };
  return { why: `Eviction triggered evacuation of VMI "${vmi.metadata.namespace}/${name}"`, evacuates: name };
}

export function assertEvictable(denial: EvictionDenial | undefined): void {
  if (denial === undefined) return;
  const message = `admission webhook "${EVICTION_WEBHOOK}" denied the request: ${denial.why}`;
  throw new ApiError(429, 'TooManyRequests', message);
}
