/** Kubernetes objects: plain JSON, frozen once stored. Typed views list the fields that are read or written. */

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonRecord;
export type JsonRecord = { [key: string]: JsonValue | undefined };

type Reference = { apiVersion: string; kind: string; name: string; uid: string };
type OwnerReference = Reference & { controller?: boolean; blockOwnerDeletion?: boolean };

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

type Requirement = { key: string; operator: string; values?: string[] };
type SelectorTerm = { matchExpressions?: Requirement[]; matchFields?: Requirement[] };

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

type ActivePhase = 'Pending' | 'Scheduling' | 'Scheduled' | 'PreparingTarget' | 'TargetReady' | 'Running';
export type MigrationPhase = ActivePhase | 'Succeeded' | 'Failed';

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

/** The list there; empty if there is none. */
export function listAt(value: JsonValue | undefined, ...path: string[]): JsonValue[] {
  const list = at(value, ...path);
  return Array.isArray(list) ? list : [];
}

/** Whether two JSON values are equal, ignoring the order of keys. */
export function sameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => sameJson(a[key], b[key]));
}

export function hasCondition({ status }: KubeObject, type: string, value: string): boolean {
  return listAt(status, 'conditions').some((one) => at(one, 'type') === type && at(one, 'status') === value);
}

export function conditionsOf(object: KubePod | KubeVmi): ObjectCondition[] {
  object.status ??= {};
  object.status.conditions ??= [];
  return object.status.conditions;
}

/** Keeps the transition time if the status stays the same. */
export function setCondition(conditions: ObjectCondition[], condition: ObjectCondition, now: string): void {
  const index = conditions.findIndex(({ type }) => type === condition.type);
  const old = conditions[index];
  const isSame = old?.status === condition.status;
  if (isSame && old.reason === condition.reason && old.message === condition.message) return;
  const lastTransitionTime = isSame ? (old.lastTransitionTime ?? now) : now;
  conditions[index < 0 ? conditions.length : index] = { ...condition, lastTransitionTime };
}
