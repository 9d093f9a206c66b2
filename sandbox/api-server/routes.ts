import { typeAt } from './built-in-types.ts';
import type { ResourceType } from './resource-types.ts';
import { VMI_SUBRESOURCES_GROUP } from './subresources.ts';

/** The resource of a path under /api or /apis. */
export interface Route {
  readonly type: ResourceType;
  /** Undefined for cluster-scoped resources and for lists over all namespaces. */
  readonly namespace: string | undefined;
  /** Undefined for the whole collection. */
  readonly name: string | undefined;
  readonly subresource: string;
}

/** Subresources of a namespace; any other third part of a path is a collection in the namespace. */
const OF_NAMESPACES = new Set(['status', 'finalize']);

/** Finds the resource of a path, or undefined if there is none. */
export function findRoute(path: string): Route | undefined {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const core = parts[0] === 'api';
  if (!core && parts[0] !== 'apis') return undefined;
  const ofKubeVirt = parts[1] === VMI_SUBRESOURCES_GROUP;
  const group = core ? '' : ofKubeVirt ? 'kubevirt.io' : (parts[1] ?? '');
  const version = parts[core ? 1 : 2] ?? '';
  let rest = parts.slice(core ? 2 : 3);
  let namespace: string | undefined;
  if (rest[0] === 'namespaces' && rest[2] !== undefined && !OF_NAMESPACES.has(rest[2])) {
    namespace = rest[1];
    rest = rest.slice(2);
  }
  const [plural, name, subresource = ''] = rest;
  if (plural === undefined || rest.length > 3) return undefined;
  if (ofKubeVirt !== (group === 'kubevirt.io' && subresource === 'unpause')) return undefined;
  const type = typeAt(group, version, plural);
  if (!type || (namespace !== undefined && !type.namespaced)) return undefined;
  if (type.namespaced && namespace === undefined && name !== undefined) return undefined;
  return { type, namespace, name, subresource };
}
