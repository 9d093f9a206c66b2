import type { IncomingMessage } from 'node:http';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { formatTime } from '../../model/lease/timing.ts';
import {
  at,
  conditionsOf,
  hasCondition,
  type JsonValue,
  type KubePod,
  type KubeVmi,
  setCondition,
} from '../objects.ts';
import { apiVersionOf, MIGRATIONS, VIRTUAL_MACHINE_INSTANCES } from './built-in-types.ts';
import type { Call, DeleteOptions, Target } from './call.ts';
import { ApiError, assertSame, badRequest, conflict, unlessNotFound } from './errors.ts';
import type { Registry } from './registry.ts';

export async function bindPod(registry: Registry, target: Target, body: JsonValue, call: Call): Promise<void> {
  const nodeName = at(body, 'target', 'name');
  if (typeof nodeName !== 'string' || nodeName === '') throw badRequest('binding: target.name is required');
  const uid = at(body, 'metadata', 'uid');
  await registry.change({ ...target, subresource: 'binding' }, call, (current) => {
    const pod = structuredClone(current) as KubePod;
    const { name } = pod.metadata;
    if (typeof uid === 'string' && uid !== '') assertSame(target.type, name, 'UID', uid, pod.metadata.uid);
    if (pod.metadata.deletionTimestamp !== undefined) {
      throw conflict(target.type, name, `pod ${name} is being deleted, cannot be assigned to a host`);
    }
    if (pod.spec.nodeName) {
      throw conflict(target.type, name, `pod ${name} is already assigned to node "${pod.spec.nodeName}"`);
    }
    pod.spec.nodeName = nodeName;
    setCondition(conditionsOf(pod), { type: 'PodScheduled', status: 'True' }, formatTime(Date.now()));
    return pod;
  });
}

/** POST pods/eviction: deletes a pod unless KubeVirt denies it. There are no disruption budgets. */
export async function evictPod(registry: Registry, target: Target, body: JsonValue, call: Call): Promise<void> {
  const options = (at(body, 'deleteOptions') ?? {}) as DeleteOptions;
  const dryRun = call.dryRun || (options.dryRun ?? []).includes('All');
  const pod = registry.get(target) as KubePod;
  const vmiTarget = (name: string): Target => ({ ...target, type: VIRTUAL_MACHINE_INSTANCES, name });
  const findVmi = (name: string) => {
    try {
      return registry.get(vmiTarget(name)) as KubeVmi;
    } catch (error) {
      return unlessNotFound(error);
    }
  };
  const denial = evictionDenial(pod, findVmi);
  if (denial?.evacuates !== undefined && !dryRun) {
    // Asks virt-controller to move the guest off its node.
    await registry.change(vmiTarget(denial.evacuates), call, (current) => {
      const vmi = structuredClone(current) as KubeVmi;
      if (vmi.status?.nodeName !== undefined) vmi.status.evacuationNodeName = vmi.status.nodeName;
      return vmi;
    });
  }
  assertEvictable(denial);
  await registry.delete(target, options, call);
}

export const VMI_SUBRESOURCES_GROUP = 'subresources.kubevirt.io';

/** PUT virtualmachineinstances/unpause. Source: KubeVirt, pkg/virt-api/rest/lifecycle.go and pkg/virt-handler/vm.go. */
export async function unpauseInstance(registry: Registry, target: Target, call: Call): Promise<void> {
  await registry.change(target, call, (current) => {
    const vmi = structuredClone(current) as KubeVmi;
    const { name } = vmi.metadata;
    if (vmi.status?.phase !== 'Running') throw conflict(target.type, name, 'VMI is not running');
    const { conditions = [] } = vmi.status;
    if (!conditions.some(({ type }) => type === 'Paused')) throw conflict(target.type, name, 'VMI is not paused');
    vmi.status.conditions = conditions.filter(({ type }) => type !== 'Paused');
    return vmi;
  });
}

/** PUT virtualmachines/migrate, as of virtctl. Source: KubeVirt, MigrateVMRequestHandler in pkg/virt-api/rest/lifecycle.go. */
export async function migrateMachine(registry: Registry, target: Target, call: Call): Promise<void> {
  const { namespace, name } = target;
  registry.get(target);
  const vmi = registry.get({ ...target, type: VIRTUAL_MACHINE_INSTANCES }) as KubeVmi;
  if (vmi.status?.phase !== 'Running') throw conflict(target.type, name, 'VM is not running');
  const migration = {
    apiVersion: apiVersionOf(MIGRATIONS),
    kind: MIGRATIONS.kind,
    metadata: { generateName: 'kubevirt-migrate-vm-', namespace },
    spec: { vmiName: name },
  };
  await registry.create(MIGRATIONS, namespace, migration as JsonValue, call);
}

/** KubeVirt's route declares no produced type, so go-restful only accepts clients that accept any type. */
export function assertAcceptsAnything({ headers: { accept = '*/*' } }: IncomingMessage): void {
  const types = accept.split(',').map((type) => type.split(';')[0]?.trim());
  if (!types.includes('*/*')) throw new ApiError(406, 'NotAcceptable', '406: Not Acceptable');
}

type Denial = { readonly why: string; readonly evacuates?: string };

const EVICTION_WEBHOOK = 'virt-launcher-eviction-interceptor.kubevirt.io';

/**
 * Source: KubeVirt, pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go
 * @returns why it is denied, and the VMI that is to leave its node first
 */
export function evictionDenial(pod: KubePod, findVmi: (name: string) => KubeVmi | undefined): Denial | undefined {
  const { labels = {}, annotations = {} } = pod.metadata;
  const name = annotations['kubevirt.io/domain'];
  if (labels['kubevirt.io'] !== 'virt-launcher' || isFinalPhase(pod.status?.phase) || name === undefined)
    return undefined;
  const vmi = findVmi(name);
  if (vmi === undefined) return { why: `kubevirt failed getting the vmi: virtualmachineinstances "${name}" not found` };
  const strategy = at(vmi, 'spec', 'evictionStrategy');
  const isMigratable = hasCondition(vmi, 'LiveMigratable', 'True');
  if (strategy === 'LiveMigrate' && !isMigratable) {
    return { why: `VMI ${name} is configured with an eviction strategy but is not live-migratable` };
  }
  const stays =
    strategy === 'LiveMigrate' || strategy === 'External' || (strategy === 'LiveMigrateIfPossible' && isMigratable);
  if (!stays) return undefined;
  if (vmi.status?.nodeName !== pod.spec.nodeName) return { why: 'Eviction request for target Pod' };
  return { why: `Eviction triggered evacuation of VMI "${vmi.metadata.namespace}/${name}"`, evacuates: name };
}

export function assertEvictable(denial: Denial | undefined): void {
  if (denial === undefined) return;
  const message = `admission webhook "${EVICTION_WEBHOOK}" denied the request: ${denial.why}`;
  throw new ApiError(429, 'TooManyRequests', message);
}
