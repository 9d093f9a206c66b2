/** Kubernetes objects: plain JSON, frozen once stored. Typed views list the fields that are read or written. */

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonRecord;
export type JsonRecord = { [key: string]: JsonValue | undefined };

type OwnerReference = {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
};

export type Meta = {
  [key: string]: JsonValue | undefined;
  name: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
};

export type KubeObject = {
  [key: string]: JsonValue | undefined;
  apiVersion: string;
  kind: string;
  metadata: Meta;
};

export type ObjectCondition = {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastHeartbeatTime?: string;
};

type Resources = { requests?: Record<string, string>; limits?: Record<string, string> };

export type Container = {
  [key: string]: JsonValue | undefined;
  name: string;
  image?: string;
  restartPolicy?: string;
  resources?: Resources;
};

type Toleration = { key?: string; operator?: string; value?: string; effect?: string };

export type PodAffinityTerm = {
  labelSelector?: JsonRecord;
  namespaces?: string[];
  namespaceSelector?: JsonRecord;
  topologyKey: string;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
};

type RequiredPodTerms = { requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[] };

type SelectorTerm = {
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
  matchFields?: { key: string; operator: string; values?: string[] }[];
};

export type KubePod = KubeObject & {
  spec: JsonRecord & {
    nodeName?: string;
    schedulerName?: string;
    containers: Container[];
    initContainers?: Container[];
    nodeSelector?: Record<string, string>;
    tolerations?: Toleration[];
    schedulingGates?: JsonRecord[];
    overhead?: Record<string, string>;
    resources?: Resources;
    readinessGates?: { conditionType: string }[];
    affinity?: {
      nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: SelectorTerm[] } };
      podAffinity?: RequiredPodTerms;
      podAntiAffinity?: RequiredPodTerms;
    };
  };
  status?: JsonRecord & {
    phase?: string;
    reason?: string;
    message?: string;
    conditions?: ObjectCondition[];
    containerStatuses?: JsonRecord[];
    initContainerStatuses?: JsonRecord[];
    qosClass?: string;
    startTime?: string;
  };
};

export type KubeNode = KubeObject & {
  spec?: JsonRecord & { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
  status?: JsonRecord & {
    allocatable?: Record<string, string>;
    capacity?: Record<string, string>;
    conditions?: ObjectCondition[];
  };
};

export type KubeVmi = KubeObject & {
  spec: JsonRecord;
  status?: JsonRecord & {
    phase?: string;
    nodeName?: string;
    /** Node of each launcher, by the launcher's uid. */
    activePods?: Record<string, string>;
    /** The node that a drain asks it to leave. */
    evacuationNodeName?: string;
    migrationState?: MigrationState;
    conditions?: ObjectCondition[];
  };
};

/** Of an instance: its last migration. Times are RFC 3339. */
type MigrationState = JsonRecord & {
  migrationUid?: string;
  sourceNode?: string;
  sourcePod?: string;
  targetNode?: string;
  targetPod?: string;
  startTimestamp?: string;
  endTimestamp?: string;
  completed?: boolean;
  failed?: boolean;
  failureReason?: string;
  abortRequested?: boolean;
};

export type MigrationPhase =
  | 'Pending'
  | 'Scheduling'
  | 'Scheduled'
  | 'PreparingTarget'
  | 'TargetReady'
  | 'Running'
  | 'Succeeded'
  | 'Failed';

export type KubeMigration = KubeObject & {
  spec: { vmiName: string };
  status?: JsonRecord & { phase?: MigrationPhase; migrationState?: MigrationState };
};

export function deepFreeze<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) if (item !== undefined) deepFreeze(item);
  }
  return value;
}

export function isRecord(value: JsonValue | undefined): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function at(value: JsonValue | undefined, ...path: string[]): JsonValue | undefined {
  let here = value;
  for (const key of path) {
    if (!isRecord(here)) return undefined;
    here = here[key];
  }
  return here;
}

/** Whether two JSON values are equal, ignoring the order of keys. */
export function sameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = Object.keys(a).filter((key) => a[key] !== undefined);
  return (
    keys.length === Object.keys(b).filter((key) => b[key] !== undefined).length &&
    keys.every((key) => sameJson(a[key], b[key]))
  );
}

export function conditionsOf(pod: KubePod): ObjectCondition[] {
  pod.status ??= {};
  pod.status.conditions ??= [];
  return pod.status.conditions;
}

/** Keeps the transition time if the status stays the same. Returns whether anything but times changed. */
export function setCondition(conditions: ObjectCondition[], condition: ObjectCondition, now: string): boolean {
  const index = conditions.findIndex(({ type }) => type === condition.type);
  const old = conditions[index];
  const same = old?.status === condition.status && old.reason === condition.reason && old.message === condition.message;
  if (same) return false;
  const lastTransitionTime = old?.status === condition.status ? (old.lastTransitionTime ?? now) : now;
  const next = { ...condition, lastTransitionTime };
  if (index < 0) conditions.push(next);
  else conditions[index] = next;
  return true;
}
