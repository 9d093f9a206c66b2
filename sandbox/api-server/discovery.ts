import type { JsonObject } from '../objects.ts';
import { BUILT_IN_TYPES } from './built-in-types.ts';
import type { ResourceType } from './resource-types.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** Subresources whose objects belong to other groups. */
const SUBRESOURCES: Readonly<
  Record<string, readonly { name: string; group?: string; version?: string; kind: string }[]>
> = {
  Pod: [
    { name: 'binding', kind: 'Binding' },
    { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction' },
  ],
};

/** The discovery document at `path`, or undefined if discovery has no such path. */
export function discover(path: string, serverAddress: string): JsonObject | undefined {
  const trimmed = path.replace(/\/+$/, '');
  if (trimmed === '/version') return VERSION;
  if (trimmed === '/api') {
    return {
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
    };
  }
  if (trimmed === '/apis') {
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: groupsOf().map(describeGroup) };
  }
  const [, root, ...parts] = trimmed.split('/');
  if (root === 'api' && parts.length === 1 && parts[0] === 'v1') return resourceList('', 'v1');
  if (root !== 'apis') return undefined;
  const [group = '', version] = parts;
  const served = groupsOf().find(({ name }) => name === group);
  if (!served || parts.length > 2) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(served) };
  return served.versions.includes(version) ? resourceList(group, version) : undefined;
}

const VERSION: JsonObject = {
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

interface Group {
  readonly name: string;
  readonly versions: readonly string[];
}

function groupsOf(): Group[] {
  const groups = new Map<string, Set<string>>();
  for (const { group, version } of BUILT_IN_TYPES) {
    if (group !== '') groups.set(group, (groups.get(group) ?? new Set()).add(version));
  }
  return [...groups].map(([name, versions]) => ({ name, versions: [...versions] }));
}

function describeGroup({ name, versions }: Group): JsonObject {
  const described = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: described, preferredVersion: described[0] };
}

function resourceList(group: string, version: string): JsonObject {
  const types = BUILT_IN_TYPES.filter((type) => type.group === group && type.version === version);
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: types.flatMap((type) => [describeType(type), ...describeSubresources(type)]),
  };
}

function describeType({ plural, kind, namespaced, shortNames, categories }: ResourceType): JsonObject {
  return {
    name: plural,
    singularName: kind.toLowerCase(),
    namespaced,
    kind,
    verbs: VERBS,
    ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
    ...(categories.length > 0 && { categories: [...categories] }),
  };
}

function describeSubresources({ plural, kind, namespaced, hasStatus, group }: ResourceType): JsonObject[] {
  const status = hasStatus
    ? [{ name: `${plural}/status`, singularName: '', namespaced, kind, verbs: ['get', 'patch', 'update'] }]
    : [];
  const others = (group === '' ? (SUBRESOURCES[kind] ?? []) : []).map(({ name, ...rest }) => ({
    name: `${plural}/${name}`,
    singularName: '',
    namespaced,
    verbs: ['create'],
    ...rest,
  }));
  return [...status, ...others];
}
