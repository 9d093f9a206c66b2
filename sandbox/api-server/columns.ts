import { at, type JsonValue, type KubeObject } from '../objects.ts';

/** A column of `kubectl get`, as in the real server as far as the sandbox has the data. Priority 1: only `-o wide`. */
export interface TableColumn {
  readonly name: string;
  readonly type?: string;
  readonly priority?: number;
  cell(object: KubeObject, now: number): JsonValue;
}

const show = (value: JsonValue | undefined): JsonValue =>
  value === undefined || value === null || value === '' ? '<none>' : value;

const column = (name: string, value: string | TableColumn['cell'], priority = 0): TableColumn => ({
  name,
  priority,
  cell: typeof value === 'string' ? (object) => show(at(object, ...value.split('.'))) : value,
});

const list = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);

const conditionOf = (object: KubeObject, type: string) => {
  const condition = list(at(object, 'status', 'conditions')).find((candidate) => at(candidate, 'type') === type);
  return at(condition, 'status');
};

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

const NAME = column('Name', 'metadata.name');
const AGE = column('Age', ({ metadata }, now) => age(metadata.creationTimestamp, now));

export const ANY: readonly TableColumn[] = [NAME, AGE];

export const POD: readonly TableColumn[] = [
  NAME,
  column('Ready', (pod) => {
    const ready = list(at(pod, 'status', 'containerStatuses')).filter((status) => at(status, 'ready') === true);
    return `${ready.length}/${list(at(pod, 'spec', 'containers')).length}`;
  }),
  column('Status', podStatus),
  { ...column('Restarts', () => 0), type: 'integer' },
  AGE,
  column('IP', 'status.podIP', 1),
  column('Node', 'spec.nodeName', 1),
];

function podStatus(pod: KubeObject): JsonValue {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
  for (const status of list(at(pod, 'status', 'containerStatuses'))) {
    const waiting = at(status, 'state', 'waiting', 'reason');
    if (waiting !== undefined) return waiting;
  }
  return at(pod, 'status', 'reason') ?? at(pod, 'status', 'phase') ?? 'Pending';
}

export const NODE: readonly TableColumn[] = [
  NAME,
  column('Status', nodeStatus),
  column('Roles', ({ metadata }) => {
    const prefix = 'node-role.kubernetes.io/';
    const roles = Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith(prefix));
    return show(roles.map((key) => key.slice(prefix.length)).join(','));
  }),
  AGE,
  column('Version', 'status.nodeInfo.kubeletVersion'),
];

function nodeStatus(node: KubeObject): JsonValue {
  const status = conditionOf(node, 'Ready') === 'True' ? 'Ready' : 'NotReady';
  return at(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status;
}

export const NAMESPACE_COLUMN: readonly TableColumn[] = [NAME, column('Status', 'status.phase'), AGE];

export const EVENT: readonly TableColumn[] = [
  column('Last Seen', ({ series, lastTimestamp, eventTime, firstTimestamp }, now) => {
    const times = [at(series, 'lastObservedTime'), lastTimestamp, eventTime, firstTimestamp];
    const newest = times.find((time) => typeof time === 'string');
    return age(newest, now);
  }),
  column('Type', 'type'),
  column('Reason', 'reason'),
  column('Object', ({ involvedObject: of }) => `${String(at(of, 'kind')).toLowerCase()}/${at(of, 'name')}`),
  column('Message', 'message'),
  column('Name', 'metadata.name', 1),
];

export const LEASE: readonly TableColumn[] = [
  NAME,
  column('Holder', 'spec.holderIdentity'),
  AGE,
  column('Renewed', 'spec.renewTime', 1),
];

export const VIRTUAL_MACHINE: readonly TableColumn[] = [
  NAME,
  AGE,
  column('Status', 'status.printableStatus'),
  column('Ready', (machine) => at(machine, 'status', 'ready') ?? 'False'),
];

export const VIRTUAL_MACHINE_INSTANCE: readonly TableColumn[] = [
  NAME,
  AGE,
  column('Phase', 'status.phase'),
  column('NodeName', 'status.nodeName'),
  column('Ready', (vmi) => conditionOf(vmi, 'Ready') ?? 'False'),
];

export const MIGRATION: readonly TableColumn[] = [
  NAME,
  AGE,
  column('Phase', 'status.phase'),
  column('VMI', 'spec.vmiName'),
];

export const NODE_TOPOLOGY: readonly TableColumn[] = [
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
];
