import { createReflector, type Watches } from '../../kube/reflector.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/resources.ts';
import { READ_ANNOTATIONS } from '../../model/launcher/fits.ts';
import { type CacheOptions, LIST_PAGE } from './options.ts';

/** VMIs from the watch. */
export interface VmiCache {
  readonly watches: Watches;
  find(namespace: string, name: string): VirtualMachineInstance | undefined;
}

export const VMI_PATH = '/apis/kubevirt.io/v1';

export function createVmiCache({ client, log, now }: CacheOptions): VmiCache {
  const instances = createReflector({
    client,
    path: `${VMI_PATH}/virtualmachineinstances`,
    schema: virtualMachineInstance,
    page: LIST_PAGE,
    project: reduced,
    optional: true,
    log,
    now,
  });
  return {
    watches: { VMIs: instances },
    find: (namespace, name) => instances.items.get(`${namespace}/${name}`),
  };
}

/**
 * The fields that affect the decision about a launcher; other metadata is the largest part. The launcher itself has the
 * node selectors.
 */
function reduced({ metadata, spec }: VirtualMachineInstance): VirtualMachineInstance {
  const kept = Object.entries(metadata.annotations ?? {}).filter(([name]) => READ_ANNOTATIONS.includes(name));
  return {
    metadata: {
      uid: metadata.uid,
      labels: undefined,
      annotations: kept.length === 0 ? undefined : Object.fromEntries(kept),
      ownerReferences: undefined,
    },
    spec: { domain: spec.domain, networks: spec.networks, nodeSelector: undefined, affinity: undefined },
  };
}
