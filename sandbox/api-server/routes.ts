import type { JsonRecord } from '../objects.ts';
import { apiVersionOf, type ResourceType, typeAt } from './built-in-types.ts';
import { VMI_SUBRESOURCES_GROUP } from './subresources.ts';

export interface ApiRoute {
  readonly type: ResourceType;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string;
}

/** Subresources of a namespace; any other third part of a path is a collection in the namespace. */
const OF_NAMESPACES = new Set(['status', 'finalize']);

/** Subresources that KubeVirt serves in a group of their own. */
const OF_KUBEVIRT = new Set(['virtualmachineinstances/unpause', 'virtualmachines/migrate']);

export function findRoute(path: string): ApiRoute | undefined {
  const parts = path.split('/').flatMap((part) => (part === '' ? [] : [decodeURIComponent(part)]));
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
  if (ofKubeVirt !== (group === 'kubevirt.io' && OF_KUBEVIRT.has(`${plural}/${subresource}`))) return undefined;
  const type = typeAt(group, version, plural);
  if (!type || (namespace !== undefined && !type.namespaced)) return undefined;
  if (type.namespaced && namespace === undefined && name !== undefined) return undefined;
  return { type, namespace, name, subresource };
}

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

const VERSION: JsonRecord = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.0+plumbline-sandbox',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: 'node',
};

/** @param types that are served now */
export function discover(path: string, serverAddress: string, types: readonly ResourceType[]): JsonRecord | undefined {
  const trimmed = path.replace(/\/+$/, '');
  const groups = new Map(types.filter(({ group }) => group !== '').map((type) => [type.group, type]));
  switch (trimmed) {
    case '/version':
      return VERSION;
    case '/api': {
      const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress }];
      return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs };
    }
    case '/apis':
      return { kind: 'APIGroupList', apiVersion: 'v1', groups: [...groups.values()].map(describeGroup) };
    case '/api/v1':
      return resourceList('v1', types);
  }
  const [, group = '', version] = /^\/apis\/([^/]+)(?:\/([^/]+))?$/.exec(trimmed) ?? [];
  const served = groups.get(group);
  if (served === undefined) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(served) };
  return version === served.version ? resourceList(apiVersionOf(served), types) : undefined;
}

function describeGroup(type: ResourceType): JsonRecord {
  const version = { groupVersion: apiVersionOf(type), version: type.version };
  return { name: type.group, versions: [version], preferredVersion: version };
}

function resourceList(groupVersion: string, types: readonly ResourceType[]): JsonRecord {
  const resources = types.filter((type) => apiVersionOf(type) === groupVersion).flatMap(describeType);
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}

const POD_SUBRESOURCES = [
  { name: 'binding', kind: 'Binding', verbs: ['create'] },
  { name: 'log', kind: 'Pod', verbs: ['get'] },
  { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'] },
  { name: 'portforward', kind: 'PodPortForwardOptions', verbs: ['create', 'get'] },
];

function describeType({ plural, kind, namespaced, shortNames, categories, hasStatus }: ResourceType): JsonRecord[] {
  const subresource = (name: string, rest: JsonRecord): JsonRecord => {
    return { name: `${plural}/${name}`, singularName: '', namespaced, ...rest };
  };
  const lists = {
    ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
    ...(categories.length > 0 && { categories: [...categories] }),
  };
  return [
    { name: plural, singularName: kind.toLowerCase(), namespaced, kind, verbs: VERBS, ...lists },
    ...(hasStatus ? [subresource('status', { kind, verbs: ['get', 'patch', 'update'] })] : []),
    ...(kind === 'Pod' ? POD_SUBRESOURCES.map(({ name, ...rest }) => subresource(name, rest)) : []),
  ];
}
