import { instancesPath } from '../../kube/cluster-view/vmis.ts';
import { createReflector, type WatchOptions } from '../../kube/reflector.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { READ_ANNOTATIONS } from '../../model/launcher/recognize.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { LIST_PAGE_OBJECTS } from './node-cache.ts';

/** Ten thousand VMIs of one namespace need a third of it. A VMI that does not fit is read when its launcher is created. */
const MAX_VMI_BYTES = 48 * 1024 * 1024;

export function createVmiCache({ client, log, nowSeconds }: WatchOptions) {
  const instances = createReflector({
    client,
    path: instancesPath(),
    schema: virtualMachineInstance,
    page: LIST_PAGE_OBJECTS,
    project: vmiView,
    budget: new TenantBudget(MAX_VMI_BYTES),
    optional: true,
    log,
    nowSeconds,
  });
  return {
    watches: { VMIs: instances },
    find: (namespace: string, name: string): VmiShape | undefined => instances.items.get(`${namespace}/${name}`),
  };
}

/** The fields of a VMI that affect the decision about its launcher. The launcher itself has the node selectors. */
function vmiView({ metadata, spec }: VirtualMachineInstance): VmiShape {
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
