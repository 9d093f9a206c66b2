import { createReflector } from '../../kube/reflector.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { READ_ANNOTATIONS } from '../../model/launcher/decide.ts';
import type { VmiShape } from '../../model/launcher/shapes.ts';
import type { NetworkedVmi } from '../../model/networks/interfaces.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { type CacheOptions, LIST_PAGE } from './options.ts';

/** The fields of a VMI that affect the decision about its launcher. */
export type VmiView = VmiShape & NetworkedVmi;

export const VMI_PATH = '/apis/kubevirt.io/v1';

/** Ten thousand VMIs of one namespace need a third of it. A VMI that does not fit is read when its launcher is created. */
const MAX_BYTES = 48 * 1024 * 1024;

/** VMIs from the watch. */
export function createVmiCache({ client, log, now }: CacheOptions) {
  const instances = createReflector({
    client,
    path: `${VMI_PATH}/virtualmachineinstances`,
    schema: virtualMachineInstance,
    page: LIST_PAGE,
    project: vmiView,
    budget: new TenantBudget(MAX_BYTES),
    optional: true,
    log,
    now,
  });
  return {
    watches: { VMIs: instances },
    find: (namespace: string, name: string): VmiView | undefined => instances.items.get(`${namespace}/${name}`),
  };
}

/** The launcher itself has the node selectors. */
function vmiView({ metadata, spec }: VirtualMachineInstance): VmiView {
  const { limits, requests } = spec.domain.resources ?? {};
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => READ_ANNOTATIONS.includes(name));
  return {
    metadata: {
      uid: metadata.uid,
      annotations: annotations.length === 0 ? undefined : Object.fromEntries(annotations),
    },
    spec: {
      domain: { ...spec.domain, resources: { limits: cpuOf(limits), requests: cpuOf(requests) } },
      networks: spec.networks,
    },
  };
}

function cpuOf(amounts: Readonly<Record<string, string>> | undefined) {
  return amounts?.['cpu'] === undefined ? undefined : { cpu: amounts['cpu'] };
}
