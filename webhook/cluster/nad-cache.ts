import { createReflector } from '../../kube/reflector.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';
import { type NetworkRef, refText } from '../../model/networks/attachments.ts';
import type { Plugin } from '../../model/networks/cni-config.ts';
import { isPrimaryNetwork, type NadFacts, nadFacts } from '../../model/networks/nad.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { type CacheOptions, LIST_PAGE } from './options.ts';

export const NAD_PATH = '/apis/k8s.cni.cncf.io/v1';

const MAX_BYTES = 16 * 1024 * 1024;

/** Network attachment definitions, reduced to the fields that classify them. */
export function createNadCache({ client, log, now }: CacheOptions) {
  const primaries = new Map<string, Set<string>>();
  const definitions = createReflector({
    client,
    path: `${NAD_PATH}/network-attachment-definitions`,
    schema: networkAttachmentDefinition,
    page: LIST_PAGE,
    project: ({ metadata, spec }) => compact(nadFacts({ metadata, spec: { config: spec?.config } })),
    budget: new TenantBudget(MAX_BYTES),
    onChange: ({ key, after }) => {
      const [namespace = '', name = ''] = key.split('/');
      if (after !== undefined && isPrimaryNetwork(after)) {
        primaries.set(namespace, (primaries.get(namespace) ?? new Set()).add(name));
      } else if (primaries.get(namespace)?.delete(name) && primaries.get(namespace)?.size === 0) {
        primaries.delete(namespace);
      }
    },
    optional: true,
    log,
    now,
  });
  return {
    watches: { 'network definitions': definitions },
    find: (ref: NetworkRef): NadFacts | undefined => definitions.items.get(refText(ref)),
    /** The definition with the role primary in a namespace. */
    primaryIn(namespace: string): NetworkRef | undefined {
      const [name] = primaries.get(namespace) ?? [];
      return name === undefined ? undefined : { namespace, name };
    },
  };
}

/** The facts without absent fields. */
function compact({ main, ...facts }: NadFacts): NadFacts {
  if (typeof main === 'string') return { ...facts, main };
  const fields = Object.entries(main).filter(([, value]) => value !== undefined);
  return { ...facts, main: Object.fromEntries(fields) as Plugin };
}
