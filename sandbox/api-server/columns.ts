import { at, type Json, type JsonObject, type KubeObject } from '../objects.ts';
import type { Column, ResourceType } from './resource-types.ts';

/** Columns of `kubectl get` for each resource: those of the real server, as far as the sandbox has the data. */

const show = (value: Json | undefined, absent = '<none>'): Json =>
  value === undefined || value === null || value === '' ? absent : value;

const path = (name: string, keys: string[], priority = 0, absent?: string): Column => ({
  name,
  priority,
  cell: (object) => show(at(object, ...keys), absent),
});

const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);

/** The status of a condition. */
const conditionOf = (object: KubeObject, type: string) =>
  at(
    list(at(object, 'status', 'conditions')).find((one) => at(one, 'type') === type),
    'status',
  );

/** The age in kubectl's notation: 8s, 5m12s, 3h, 4d. */
export function age(since: string | undefined, now: number): string {
  if (since === undefined) return '<unknown>';
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

const NAME: Column = { name: 'Name', cell: ({ metadata }) => metadata.name };
const AGE: Column = { name: 'Age', cell: ({ metadata }, now) => age(metadata.creationTimestamp, now) };

export const ANY: readonly Column[] = [NAME, AGE];

export const POD: readonly Column[] = [
  NAME,
  {
    name: 'Ready',
    cell: (pod) => {
      const containers = list(at(pod, 'spec', 'containers')).length;
      const ready = list(at(pod, 'status', 'containerStatuses')).filter((status) => at(status, 'ready') === true);
      return `${ready.length}/${containers}`;
    },
  },
  { name: 'Status', cell: podStatus },
  { name: 'Restarts', type: 'integer', cell: () => 0 },
  AGE,
  path('IP', ['status', 'podIP'], 1),
  path('Node', ['spec', 'nodeName'], 1),
];

function podStatus(pod: KubeObject): Json {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
  for (const status of list(at(pod, 'status', 'containerStatuses'))) {
    const waiting = at(status, 'state', 'waiting', 'reason');
    if (waiting !== undefined) return waiting;
  }
  return at(pod, 'status', 'reason') ?? at(pod, 'status', 'phase') ?? 'Pending';
}

export const NODE: readonly Column[] = [
  NAME,
  {
    name: 'Status',
    cell: (node) => {
      const ready = conditionOf(node, 'Ready');
      const readiness = ready === 'True' ? 'Ready' : 'NotReady';
      const status = ready === undefined ? 'Unknown' : readiness;
      return at(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status;
    },
  },
  {
    name: 'Roles',
    cell: ({ metadata }) => {
      const prefix = 'node-role.kubernetes.io/';
      const roles = Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith(prefix));
      return roles.map((key) => key.slice(prefix.length)).join(',') || '<none>';
    },
  },
  AGE,
  path('Version', ['status', 'nodeInfo', 'kubeletVersion']),
];

export const NAMESPACE: readonly Column[] = [NAME, path('Status', ['status', 'phase']), AGE];

export const EVENT: readonly Column[] = [
  {
    name: 'Last Seen',
    cell: (event, now) => {
      const seen = [
        at(event, 'series', 'lastObservedTime'),
        event.lastTimestamp,
        event.eventTime,
        event.firstTimestamp,
      ];
      return age(
        seen.find((time): time is string => typeof time === 'string'),
        now,
      );
    },
  },
  path('Type', ['type']),
  path('Reason', ['reason']),
  {
    name: 'Object',
    cell: (event) =>
      `${String(at(event, 'involvedObject', 'kind')).toLowerCase()}/${at(event, 'involvedObject', 'name')}`,
  },
  path('Message', ['message']),
  { name: 'Name', priority: 1, cell: ({ metadata }) => metadata.name },
];

export const LEASE: readonly Column[] = [
  NAME,
  path('Holder', ['spec', 'holderIdentity']),
  AGE,
  path('Renewed', ['spec', 'renewTime'], 1),
];

export const VIRTUAL_MACHINE: readonly Column[] = [
  NAME,
  AGE,
  path('Status', ['status', 'printableStatus']),
  path('Ready', ['status', 'ready'], 0, 'False'),
];

export const VIRTUAL_MACHINE_INSTANCE: readonly Column[] = [
  NAME,
  AGE,
  path('Phase', ['status', 'phase']),
  path('NodeName', ['status', 'nodeName']),
  { name: 'Ready', cell: (vmi) => conditionOf(vmi, 'Ready') ?? 'False' },
];

const condition = (name: string, type: string): Column => ({
  name,
  cell: (object) => show(conditionOf(object, type)),
});

/** As in Plumbline's own CRD. */
export const NODE_TOPOLOGY: readonly Column[] = [
  NAME,
  path('CPUs', ['status', 'summary', 'cpus']),
  path('Free', ['status', 'summary', 'free']),
  path('Networks', ['status', 'summary', 'networks']),
  path('Policy', ['status', 'cpuManager', 'policy']),
  path('Topology', ['status', 'topologyManager', 'policy']),
  condition('Known', 'AssignmentsKnown'),
  {
    name: 'Last-Report',
    cell: (object, now) => {
      const reported = at(object, 'status', 'summary', 'reported');
      return age(typeof reported === 'string' ? reported : undefined, now);
    },
  },
  path('Full-PCPUs', ['status', 'cpuManager', 'options', 'full-pcpus-only'], 1),
  path('Reserved', ['status', 'reserved'], 1),
  path('Kubelet', ['status', 'kubeletVersion'], 1),
  AGE,
];

/** The part of each object that a Table contains in addition to the cells. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Whether a client requests a Table: the first supported media type of its Accept header decides. */
export function wantsTable(accept: string | undefined): boolean {
  for (const part of (accept ?? '').split(',')) {
    const [media, ...parameters] = part.split(';').map((text) => text.trim());
    if (media !== 'application/json' && media !== '*/*') continue;
    const given = new Map(parameters.map((text) => text.split('=', 2) as [string, string]));
    const as = given.get('as');
    if (as === undefined) return false;
    if (as === 'Table' && given.get('g') === 'meta.k8s.io' && given.get('v') === 'v1') return true;
  }
  return false;
}

export function tableOf(
  type: ResourceType,
  objects: readonly KubeObject[],
  metadata: JsonObject,
  include: IncludeObject,
  now: number,
): JsonObject {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: type.columns.map(({ name, type: kind = 'string', priority = 0 }) => ({
      name,
      type: kind,
      format: name === 'Name' ? 'name' : '',
      description: '',
      priority,
    })),
    rows: objects.map((object) => ({
      cells: type.columns.map((column) => column.cell(object, now)),
      ...(include !== 'None' && { object: include === 'Object' ? object : partial(object) }),
    })),
  };
}

function partial({ metadata }: KubeObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}
