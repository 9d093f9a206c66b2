import { at, type JsonRecord, type JsonValue, type KubeObject, listAt } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';

/** A column of `kubectl get`, as in the real server as far as the sandbox has the data. Priority 1: only `-o wide`. */
interface TableColumn {
  readonly name: string;
  readonly type: 'string' | 'integer';
  readonly priority: number;
  cell(object: KubeObject, now: number): JsonValue;
}

const show = (value: JsonValue | undefined): JsonValue =>
  value === undefined || value === null || value === '' ? '<none>' : value;

const column = (name: string, value: string | TableColumn['cell'], priority = 0): TableColumn => ({
  name,
  type: 'string',
  priority,
  cell: typeof value === 'string' ? (object) => show(at(object, ...value.split('.'))) : value,
});

const conditionOf = (object: KubeObject, type: string) =>
  at(
    listAt(object, 'status', 'conditions').find((condition) => at(condition, 'type') === type),
    'status',
  );

/** In kubectl's notation: 8s, 5m12s, 3h, 4d. */
function age(since: JsonValue | undefined, now: number): string {
  if (typeof since !== 'string') return '<unknown>';
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

function readyContainers(pod: KubeObject): string {
  const ready = listAt(pod, 'status', 'containerStatuses').filter((status) => at(status, 'ready') === true);
  return `${ready.length}/${listAt(pod, 'spec', 'containers').length}`;
}

function podStatus(pod: KubeObject): JsonValue {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
  const reasons = listAt(pod, 'status', 'containerStatuses').map((status) => at(status, 'state', 'waiting', 'reason'));
  const waiting = reasons.find((reason) => reason !== undefined);
  return waiting ?? at(pod, 'status', 'reason') ?? at(pod, 'status', 'phase') ?? 'Pending';
}

function nodeStatus(node: KubeObject): JsonValue {
  const status = conditionOf(node, 'Ready') === 'True' ? 'Ready' : 'NotReady';
  return at(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status;
}

const ROLE_LABEL = 'node-role.kubernetes.io/';

function nodeRoles({ metadata }: KubeObject): JsonValue {
  const roles = Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith(ROLE_LABEL));
  return show(roles.map((key) => key.slice(ROLE_LABEL.length)).join(','));
}

function lastSeen({ series, lastTimestamp, eventTime, firstTimestamp }: KubeObject, now: number): string {
  const times = [at(series, 'lastObservedTime'), lastTimestamp, eventTime, firstTimestamp];
  const newest = times.find((time) => typeof time === 'string');
  return age(newest, now);
}

const NAME = column('Name', 'metadata.name');
const AGE = column('Age', ({ metadata }, now) => age(metadata.creationTimestamp, now));
const PHASE = column('Phase', 'status.phase');

/** By kind. */
const COLUMNS: Readonly<Record<string, readonly TableColumn[]>> = {
  Pod: [
    NAME,
    column('Ready', readyContainers),
    column('Status', podStatus),
    { ...column('Restarts', () => 0), type: 'integer' },
    AGE,
    column('IP', 'status.podIP', 1),
    column('Node', 'spec.nodeName', 1),
  ],
  Node: [
    NAME,
    column('Status', nodeStatus),
    column('Roles', nodeRoles),
    AGE,
    column('Version', 'status.nodeInfo.kubeletVersion'),
  ],
  Namespace: [NAME, column('Status', 'status.phase'), AGE],
  Event: [
    column('Last Seen', lastSeen),
    column('Type', 'type'),
    column('Reason', 'reason'),
    column('Object', ({ involvedObject: of }) => `${String(at(of, 'kind')).toLowerCase()}/${at(of, 'name')}`),
    column('Message', 'message'),
    column('Name', 'metadata.name', 1),
  ],
  Lease: [NAME, column('Holder', 'spec.holderIdentity'), AGE, column('Renewed', 'spec.renewTime', 1)],
  VirtualMachine: [
    NAME,
    AGE,
    column('Status', 'status.printableStatus'),
    column('Ready', (machine) => at(machine, 'status', 'ready') ?? 'False'),
  ],
  VirtualMachineInstance: [
    NAME,
    AGE,
    PHASE,
    column('NodeName', 'status.nodeName'),
    column('Ready', (vmi) => conditionOf(vmi, 'Ready') ?? 'False'),
  ],
  VirtualMachineInstanceMigration: [NAME, AGE, PHASE, column('VMI', 'spec.vmiName')],
  NodeTopology: [
    NAME,
    column('CPUs', 'status.summary.cpus'),
    column('Free', 'status.summary.free'),
    column('Networks', 'status.summary.networks'),
    column('Policy', 'status.cpuManager.policy'),
    column('Topology', 'status.topologyManager.policy'),
    column('Known', (topology) => show(conditionOf(topology, 'AssignmentsKnown'))),
    column('Last-Report', (topology, now) => age(at(topology, 'status', 'summary', 'reported'), now)),
    column('Full-PCPUs', 'status.cpuManager.options.full-pcpus-only', 1),
    column('Reserved', 'status.reserved', 1),
    column('Kubelet', 'status.kubeletVersion', 1),
    AGE,
  ],
};

/** Whether a client requests a Table: the first supported media type of its Accept header decides. */
export function wantsTable(accept = ''): boolean {
  for (const part of accept.split(',')) {
    const [media, ...parameters] = part.split(';').map((text) => text.trim());
    if (media !== 'application/json' && media !== '*/*') continue;
    const values = new Map(parameters.map((text) => text.split('=', 2) as [string, string]));
    if (!values.has('as')) return false;
    if (values.get('as') === 'Table' && values.get('g') === 'meta.k8s.io' && values.get('v') === 'v1') return true;
  }
  return false;
}

/** @param query its includeObject decides how much of each object a row has */
export function tableOf(
  type: ResourceType,
  objects: readonly KubeObject[],
  metadata: JsonRecord,
  query: URLSearchParams,
): JsonRecord {
  const include = query.get('includeObject');
  const columns = COLUMNS[type.kind] ?? [NAME, AGE];
  const rowObject = (object: KubeObject): JsonRecord =>
    include === 'Object'
      ? object
      : { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: columns.map(({ name, type: cellType, priority }) => {
      return { name, type: cellType, format: name === 'Name' ? 'name' : '', description: '', priority };
    }),
    rows: objects.map((object) => ({
      cells: columns.map((one) => one.cell(object, Date.now())),
      ...(include !== 'None' && { object: rowObject(object) }),
    })),
  };
}
