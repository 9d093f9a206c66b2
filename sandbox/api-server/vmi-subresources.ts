import type { IncomingMessage } from 'node:http';
import { draftOf, type VirtualMachineInstance } from '../objects.ts';
import type { Call } from './calls.ts';
import { conflict, notAcceptable } from './errors.ts';
import type { Registry, Target } from './registry.ts';

/** The group in which KubeVirt's own API server serves actions on VMIs. */
export const VMI_SUBRESOURCES_GROUP = 'subresources.kubevirt.io';

/**
 * PUT virtualmachineinstances/unpause: the responses of KubeVirt, and the status that virt-handler writes when the
 * guest runs again.
 * Source: KubeVirt, pkg/virt-api/rest/lifecycle.go and pkg/virt-handler/vm.go.
 * @throws ApiError 404, 409 while the VMI is not running or not paused
 */
export async function unpauseInstance(registry: Registry, target: Target, call: Call): Promise<void> {
  await registry.change(target, call, (current) => {
    const vmi = draftOf(current) as VirtualMachineInstance;
    const { name } = vmi.metadata;
    if (vmi.status?.phase !== 'Running') throw conflict(target.type, name, 'VMI is not running');
    const { conditions = [] } = vmi.status;
    if (!conditions.some(({ type }) => type === 'Paused')) throw conflict(target.type, name, 'VMI is not paused');
    vmi.status.conditions = conditions.filter(({ type }) => type !== 'Paused');
    return vmi;
  });
}

/**
 * KubeVirt's route declares no produced type, so go-restful only accepts clients that accept any type.
 * @throws ApiError 406
 */
export function assertAcceptsAnything({ headers: { accept = '*/*' } }: IncomingMessage): void {
  const types = accept.split(',').map((type) => type.split(';')[0]?.trim());
  if (!types.includes('*/*')) throw notAcceptable();
}
