import type { Reason, Verdict } from '../../diagnosis/reasons.ts';
import type { Stage, VmState } from '../../diagnosis/state.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { PLACE_LOST } from '../../model/names.ts';
import { leaseObject, nodeObject, topologyObject } from '../cli/cluster-fixture.ts';
import type { ApiObject, Objects } from '../cli/objects-api-stand-in.ts';
import { ANNOTATED, launcher } from './fixture.ts';

/** The time of all states. */
export const NOW = Date.parse('2026-11-01T10:00:00Z');
const SECONDS_AGO = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();
export const NODE = 'n1';
export const NODE_2 = 'n2';
const VM = 'fw';
export const LAUNCHER = 'virt-launcher-fw-abcde';
const TARGET = 'virt-launcher-fw-fghij';
const LOST = `node ${NODE} ${PLACE_LOST}: its kubelet would refuse the pod`;

/** A VM in some state, and the expected result of every output. */
export interface StateCase {
  readonly title: string;
  readonly objects: Objects;
  readonly subject: readonly ['vm' | 'pod', string];
  readonly state: Stage;
  readonly verdict: Verdict;
  readonly reason: Reason;
  readonly remedies: readonly string[];
  /** No extender answers in the pod of its scheduler; default: there is no such pod. */
  readonly extenderAway?: boolean;
  /** The launcher of its guest; default: the only one. */
  readonly guest?: string;
  /** `node`: where the guest runs, if not on the source. `faults`: what it lacks is reported, too. */
  readonly migration?: {
    readonly phase: Extract<VmState, { state: 'migrating' }>['migration']['phase'];
    readonly source: string;
    readonly target?: string;
    readonly node?: string;
    readonly faults?: true;
  };
  /** What `plumbline status` says, which asks no extender. */
  readonly status?: Reason;
  /** What the page says, which reads no status of containers and only the verified Events; null: nothing. */
  readonly console?: Reason | null;
  /** Outputs that do not check every node for each pod; default: the same. */
  readonly coarse?: Reason;
}

type Metadata = Readonly<Record<string, unknown>>;

interface ObjectParts {
  readonly metadata?: Metadata;
  readonly spec?: object;
  readonly status?: object;
}

interface PodParts extends ObjectParts {
  readonly cpus?: string;
  readonly resources?: Readonly<Record<string, string>>;
}

interface NodeParts {
  readonly node?: { readonly conditions?: readonly object[]; readonly spec?: object; readonly labels?: object };
  /** null: it does not report. */
  readonly report?: Partial<NodeTopologyStatus> | null;
  readonly agentAge?: number;
}

/** A cluster; null: the object does not exist. */
interface Parts extends NodeParts {
  readonly vm?: ObjectParts | null;
  readonly vmi?: ObjectParts | null;
  readonly pod?: PodParts | null;
  /** A second node, of the migration, and another launcher. */
  readonly second?: NodeParts;
  readonly target?: PodParts | null;
  /** undefined: they cannot be read. */
  readonly migrations?: readonly ObjectParts[];
  readonly schedulerAge?: number | null;
  readonly events?: readonly ReturnType<typeof event>[];
}

const DECIDED = { ...ANNOTATED, 'plumbline.dev/decision': '{"cpus":{"compute":4},"padding":1,"threadsPerCore":2}' };
const MASK = { 'plumbline.dev/cpu-mask': '1:2' };
const SEEN = { 'plumbline.dev/decision': '{"padding":0}' };
const PHYSNET0 = { 'physnet.plumbline.dev/physnet0': '1' };
const RESTARTED_DPU = {
  conditions: [
    {
      type: 'plumbline.dev/DPURestarted',
      status: 'True',
      message: 'the DPU restarted',
      lastTransitionTime: '2099-01-01T00:00:00Z',
    },
  ],
};
const DEAD_DPU = {
  conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'last renewal 61 s ago' }],
  labels: { 'k8s.ovn.org/dpu-host': '' },
};
const SINCE = SECONDS_AGO(20);

const nodeOf = (name: string, { node = {}, report = {}, agentAge = 5 }: NodeParts) => {
  return { name, node, report, agentAge };
};

/** A cluster of one node with one VM, or of two while it migrates. */
function cluster(parts: Parts): Objects {
  const { vm = {}, vmi = {}, pod = {}, second, schedulerAge = 2, events = [] } = parts;
  const nodes = [nodeOf(NODE, parts), ...(second === undefined ? [] : [nodeOf(NODE_2, second)])];
  const namespace = 'tenants';
  const owner = (kind: string, name: string, uid: string) => [
    { apiVersion: 'kubevirt.io/v1', kind, name, uid, controller: true },
  ];
  return {
    '/api/v1/nodes': nodes.map(({ name, node: { labels, spec, conditions = [] }, agentAge }) => {
      const agentReady = { type: 'plumbline.dev/AgentReady', status: agentAge > 40 ? 'False' : 'True' };
      return nodeObject(name, {
        labels,
        spec,
        conditions: [{ type: 'Ready', status: 'True' }, agentReady, ...conditions],
      });
    }),
    '/api/v1/pods': [pod, parts.target ?? null].flatMap((pod) => {
      if (pod === null) return [];
      const metadata = { annotations: DECIDED, creationTimestamp: SECONDS_AGO(60), ...pod.metadata };
      return [launcher({ ...pod, metadata, status: { phase: 'Pending', ...pod.status } }) as ApiObject];
    }),
    '/api/v1/events': events.map(({ name, reason, message, component }, i) => ({
      metadata: { name: `event-${i}`, namespace },
      involvedObject: { kind: 'Pod', namespace, name, uid: name === LAUNCHER ? 'pod-uid' : 'gone' },
      source: { component, host: NODE },
      type: 'Warning',
      reason,
      message,
      lastTimestamp: SECONDS_AGO(10),
    })),
    '/apis/kubevirt.io/v1/virtualmachines': [vm].flatMap((parts) => {
      if (parts === null) return [];
      const template = { metadata: { annotations: ANNOTATED }, spec: { domain: {} } };
      const spec = { runStrategy: 'Always', template, ...parts.spec };
      return [{ metadata: { name: VM, namespace }, spec, status: { created: vmi !== null, ...parts.status } }];
    }),
    '/apis/kubevirt.io/v1/virtualmachineinstances': [vmi].flatMap((parts) => {
      if (parts === null) return [];
      const ownerReferences = vm === null ? undefined : owner('VirtualMachine', VM, 'vm-uid');
      const metadata = { name: VM, namespace, uid: 'vmi-uid', annotations: {}, ownerReferences, ...parts.metadata };
      return [{ metadata, spec: { domain: {} }, status: { phase: 'Scheduling', ...parts.status } }];
    }),
    ...(parts.migrations && {
      '/apis/kubevirt.io/v1/virtualmachineinstancemigrations': parts.migrations.map(({ metadata, status }) => ({
        metadata: { name: 'fw-move', namespace, uid: 'm1', creationTimestamp: SECONDS_AGO(31), ...metadata },
        spec: { vmiName: VM },
        status: status ?? {},
      })),
    }),
    '/apis/plumbline.dev/v1alpha1/nodetopologies': nodes.flatMap(({ name, report }) =>
      report === null ? [] : [topologyObject(name, report)],
    ),
    '/apis/coordination.k8s.io/v1/leases': [
      ...nodes.map(({ name, agentAge }) => leaseObject(`plumbline-agent-${name}`, NOW - agentAge * 1000)),
      ...(schedulerAge === null
        ? []
        : [leaseObject('plumbline-scheduler', NOW - schedulerAge * 1000, 'plumbline-scheduler-1_x')]),
    ],
  };
}

type Row = Parts & Partial<StateCase>;

const CORDONED = { spec: { unschedulable: true } };
const REFUSED = { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }] };
const ON_NODE = { nodeName: NODE, schedulerName: 'plumbline-scheduler' };
const RUNNING = { spec: ON_NODE, status: { phase: 'Running' } };
const NETWORKED = { ...RUNNING, resources: PHYSNET0 };
const denied = (message: string) => ({
  pod: null,
  vmi: { status: { phase: 'Pending', conditions: [{ type: 'Synchronized', status: 'False', message }] } },
});
const OWNER = { podUID: 'pod-uid', namespace: 'tenants', podName: LAUNCHER };
const TARGET_OWNER = { ...OWNER, podUID: 'target-uid', podName: TARGET };
const REFUSAL = { ...OWNER, container: 'compute', message: 'CPUs 1-2 are not whole cores' };
const owns = (cpus: string, more: Partial<NodeTopologyStatus> = {}): Partial<NodeTopologyStatus> => ({
  assignments: [{ ...OWNER, container: 'compute', cpus }],
  ...more,
});
const WHOLE = owns('1-2,17-18');
/** As an agent without a last good map reports it. */
const BROKEN_MAP: Partial<NodeTopologyStatus> = {
  conditions: [
    {
      type: 'NetworkMapValid',
      status: 'False',
      reason: 'InvalidMap',
      lastTransitionTime: SECONDS_AGO(60),
      message: '/etc/plumbline/networks.yaml: physnet0: NUMA node 9 is not on this host',
    },
  ],
};
const cannotMigrate = (...more: readonly object[]) => {
  const why = { type: 'LiveMigratable', status: 'False', reason: 'HostDeviceNotLiveMigratable' };
  return { status: { phase: 'Running', nodeName: NODE, conditions: [why, ...more] } };
};
/** Others own all but the given cores of the first NUMA node, and all of the second. */
const busy = (cpus: string): Partial<NodeTopologyStatus> => ({
  assignments: [{ podUID: 'other', container: 'compute', cpus }],
});
/** @param component default: the one that writes Events with this reason */
const event = (reason: string, message: string, more: { name?: string; component?: string } = {}) => {
  const component = reason.endsWith('Error') ? 'kubelet' : 'plumbline-scheduler-plugin';
  return { name: LAUNCHER, component, reason, message, ...more };
};
const rejected = (reason: string, message: string) => ({ spec: ON_NODE, status: { phase: 'Failed', reason, message } });
const masked = (more: object = {}) => ({
  metadata: { annotations: { ...MASK, ...SEEN } },
  spec: {
    ...ON_NODE,
    containers: [
      { name: 'compute', resources: { requests: { cpu: '200m' }, limits: { 'devices.kubevirt.io/kvm': '1' } } },
    ],
    ...more,
  },
  status: { phase: 'Running' },
});
const pinning = (state: 'pinned' | 'unpinned' | 'refused', more: object = {}): Partial<NodeTopologyStatus> => ({
  pinning: [{ ...OWNER, state, vcpus: 2, ...more }],
});
const pausedVmi = (record: string, since = SINCE) => ({
  metadata: { annotations: { ...MASK, 'plumbline.dev/paused-start': record } },
  status: {
    phase: 'Running',
    nodeName: NODE,
    activePods: { 'pod-uid': NODE },
    conditions: [{ type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: since }],
  },
});
const runningVmi = {
  metadata: { annotations: MASK },
  status: { phase: 'Running', nodeName: NODE, activePods: { 'pod-uid': NODE } },
};
const maskedVm = { spec: { template: { metadata: { annotations: MASK }, spec: { domain: { cpu: { cores: 2 } } } } } };
const RUNNING_MASKED = { vm: maskedVm, vmi: runningVmi, pod: masked() };
const PAUSED_MASKED = { vm: maskedVm, vmi: pausedVmi(`paused ${SINCE}`), pod: masked() };
const SMT = 'SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2';

const RUNS_ON = (nodeName: string, more: object = {}) => ({ status: { phase: 'Running', nodeName, ...more } });
const TARGET_ID = { name: TARGET, uid: 'target-uid' };
const LABELS = { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': 'vmi-uid' };
const MADE_BY = (migration: string) => ({ ...LABELS, 'kubevirt.io/migrationJobUID': migration });
/** The launcher of a migration's target. */
const target = (parts: PodParts = {}, migration = 'm1'): PodParts => ({
  ...parts,
  metadata: { ...TARGET_ID, labels: MADE_BY(migration), creationTimestamp: SECONDS_AGO(30), ...parts.metadata },
});
const TO_NODE_2 = { nodeName: NODE_2, schedulerName: 'plumbline-scheduler' };
const ON_TARGET = { spec: TO_NODE_2, status: { phase: 'Running' } };
const ownsThere = (cpus: string) => ({
  report: { assignments: [{ ...TARGET_OWNER, container: 'compute', cpus }] },
});
const SECOND = ownsThere('1-2,17-18');
const move = (phase: string, metadata: Metadata = {}) => ({ metadata, status: { phase } });
/** A VM that runs as requested, and migrates. */
const MIGRATING: Parts = {
  vmi: RUNS_ON(NODE),
  pod: RUNNING,
  report: WHOLE,
  second: {},
  migrations: [move('Scheduling')],
};
/** As KubeVirt renders a target. */
const labelSelector = { matchLabels: { 'kubevirt.io/created-by': 'vmi-uid' } };
const SAME_HOST = { labelSelector, topologyKey: 'kubernetes.io/hostname' };
const APART = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [SAME_HOST] } };
const DEDICATED = { 'kubevirt.io/cpumanager': 'true' };
const STARTED = { migrationUid: 'm1', startTimestamp: SECONDS_AGO(9), sourceNode: NODE, targetNode: NODE_2 };
/** Its memory is being copied. */
const COPYING: Parts = {
  ...MIGRATING,
  vmi: RUNS_ON(NODE, { migrationState: STARTED }),
  target: target(ON_TARGET),
  second: SECOND,
  migrations: [move('Running')],
};
/** In KubeVirt's record of a migration. */
const DONE = { endTimestamp: SECONDS_AGO(1), completed: true };
const FAILED = { ...DONE, failed: true, failureReason: 'the connection was lost' };
const CANCELLED = { ...FAILED, abortRequested: true, abortStatus: 'Succeeded' };
const AWAY = { phase: 'copying', source: NODE, target: NODE_2 } as const;
const changes = (type: string) => RUNS_ON(NODE, { conditions: [{ type, status: 'True' }] });
const restart = (message: string) => ({ conditions: [{ type: 'RestartRequired', status: 'True', message }] });

const PLACED = { pod: RUNNING, report: WHOLE };
/** On its node; the page does not list it. */
const STARTING = { pod: { spec: ON_NODE }, console: null };
const SCHEDULING: Row = { ...MIGRATING, migration: { phase: 'scheduling', source: NODE } };
const PREPARING: Row = {
  ...MIGRATING,
  target: target({ spec: TO_NODE_2 }),
  migration: { ...AWAY, phase: 'preparing' },
};
const IN_PHASE = (phase: NonNullable<StateCase['migration']>['phase']) => ({ migration: { ...AWAY, phase } });
/** By KubeVirt's record of the migration. */
const recorded = (more: object = {}, node = NODE) => RUNS_ON(node, { migrationState: { ...STARTED, ...more } });
const MIGRATED: Row = { ...COPYING, vmi: recorded(DONE, NODE_2), migrations: [move('Succeeded')], guest: TARGET };
const SUCCEEDED = { spec: ON_NODE, status: { phase: 'Succeeded' } };
const OVER_QUOTA = { type: 'migrationRejectedByResourceQuota', status: 'True', message: 'exceeded quota: limits.cpu' };
/** A decision of the webhook that leaves out a network. */
const WITHOUT_DEVICE = {
  cpus: { compute: 4 },
  padding: 1,
  withoutDevice: [{ interface: 'data', network: 'tenants/data', on: 'physnet physent0' }],
};
const HUGE = { cpus: '64', status: REFUSED };

/** Rows by state, verdict, reason, and the ids of the remedies. */
const ROWS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  'stopped stopped SwitchedOff: start': { stopped: { vm: { spec: { runStrategy: 'Halted' } }, vmi: null, pod: null } },
  'waiting broken NoInstance: check-virt-controller': { 'KubeVirt creates no instance': { vmi: null, pod: null } },
  'waiting broken NoLauncher: check-virt-controller': {
    'KubeVirt creates no launcher': { pod: null, vmi: { status: { phase: 'Pending' } } },
  },
  'waiting broken WebhookUnavailable: bring-webhook-back': {
    'the webhook does not answer': denied('failed calling webhook "launcher.plumbline.dev": connection refused'),
  },
  'waiting broken WebhookDenied: correct-vm': {
    'the webhook denies the launcher': denied(
      'admission webhook "launcher.plumbline.dev" denied the request: plumbline: the CPU mask',
    ),
  },
  'waiting broken WebhookDenied: bring-webhook-back': {
    'the API server does not call the mutating webhook': denied(
      'admission webhook "final.plumbline.dev" denied the request: plumbline: the pod is without a decision of Plumbline',
    ),
  },
  'waiting broken QuotaExceeded: raise-quota': {
    'over the quota, counting padding and side containers': denied('exceeded quota: cpus, requested: limits.cpu=6015m'),
  },
  'waiting broken LimitRangeExceeded: raise-limit-range': {
    'over the LimitRange': denied('maximum cpu usage per Container is 4'),
  },
  'waiting broken LauncherDenied: correct-vm': {
    'denied by another webhook': denied('admission webhook "policy.example.com" denied the request'),
  },
  'failed broken UnalignedRejected: add-annotation': {
    'rejected: not annotated, no whole cores': {
      pod: { ...rejected('SMTAlignmentError', SMT), cpus: '3', metadata: { annotations: {} } },
    },
    'a loop of rejections, of which KubeVirt has left only Events': {
      vm: {
        spec: { template: { metadata: { annotations: {} }, spec: { domain: {} } } },
        status: { startFailure: { consecutiveFailCount: 3, retryAfterTimestamp: SECONDS_AGO(-40) } },
      },
      vmi: null,
      pod: null,
      events: [
        event('UnexpectedAdmissionError', 'of the VM fw-2', { name: 'virt-launcher-fw-2-zzzzz' }),
        event('SMTAlignmentError', SMT, { name: 'virt-launcher-fw-zzzzz' }),
      ],
      console: 'NoInstance',
    },
  },
  'failed broken UnpaddedRejected: start-again': {
    'rejected: annotated, while the webhook was down': {
      pod: { ...rejected('SMTAlignmentError', SMT), cpus: '3', metadata: { annotations: ANNOTATED } },
    },
  },
  'failed waiting CoresTaken: wait': {
    'rejected: another pod got its cores': {
      pod: rejected(
        'SMTAlignmentError',
        'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2',
      ),
    },
  },
  'failed broken TopologyRejected: check-extender': {
    'rejected: no NUMA node has room': {
      pod: rejected('TopologyAffinityError', 'Resources cannot be allocated with Topology locality'),
    },
  },
  'failed waiting AdmissionRejected: wait': {
    'rejected: another pod got a device': { pod: rejected('UnexpectedAdmissionError', 'Allocate failed') },
  },
  'failed waiting EvictedBeforeStart: look-at-successor': {
    'evicted before it started': {
      pod: { spec: ON_NODE, status: { phase: 'Failed', reason: 'Evicted' } },
      events: [event('EvictedBeforeStart', 'the DPU has died')],
      console: null,
    },
  },
  'failed broken Failed: read-events': {
    'failed, with an Event EvictedBeforeStart that its user wrote': {
      pod: { spec: ON_NODE, status: { phase: 'Failed', reason: 'OutOfcpu' } },
      events: [event('EvictedBeforeStart', 'x', { component: 'a-user' })],
      console: null,
    },
  },
  'stopped stopped Ended': { ended: { pod: SUCCEEDED } },
  'stopping stopped Deleting': {
    'being deleted': { pod: { ...RUNNING, metadata: { deletionTimestamp: SECONDS_AGO(3) } } },
    'is deleted while it migrates': {
      ...COPYING,
      vmi: { ...COPYING.vmi, metadata: { deletionTimestamp: SECONDS_AGO(1) } },
    },
  },
  'waiting waiting Gated: ask-the-gate-keeper': {
    'behind a scheduling gate': {
      pod: { spec: { schedulerName: 'plumbline-scheduler', schedulingGates: [{ name: 'example.com/wait' }] } },
    },
  },
  'waiting broken SchedulerAway: bring-scheduler-back': {
    'Plumbline’s scheduler does not run': { schedulerAge: null, coarse: 'SchedulerAway', console: 'NotTried' },
    'Plumbline’s scheduler is silent': { schedulerAge: 300, console: 'NotTried' },
  },
  'waiting broken ExtenderAway: bring-scheduler-back': {
    'the extender does not answer': { status: 'NotTried', console: 'NotTried', extenderAway: true },
  },
  'waiting waiting NotTried: bring-scheduler-back': { 'no scheduler has tried it yet': {} },
  'waiting waiting NoNodeFits: free-whole-cores': {
    'the node is full': { pod: { status: REFUSED }, report: busy('1-15,17-31') },
  },
  'waiting broken TooLarge: ask-for-less': { 'larger than any empty node': { pod: HUGE, coarse: 'NoNodeFits' } },
  'waiting waiting NoNodeFits: uncordon': { 'the only node is cordoned': { pod: { status: REFUSED }, node: CORDONED } },
  'waiting waiting NoNodeFits: bring-dpu-back': {
    'the only node’s DPU is dead': { pod: { status: REFUSED }, node: DEAD_DPU },
  },
  'waiting waiting RetryPending: wait, look-at-volumes': {
    'a node would accept it': { pod: { status: REFUSED }, coarse: 'NoNodeFits' },
  },
  'waiting broken WebhookMissed: start-again': {
    'the webhook did not see it': { pod: { cpus: '3', metadata: { annotations: ANNOTATED }, status: REFUSED } },
  },
  'starting degraded NotDecided: start-again': {
    'it has a CPU mask, and the webhook did not see it': {
      vm: maskedVm,
      pod: { ...masked(), metadata: { annotations: MASK }, status: { phase: 'Pending' } },
      console: null,
    },
  },
  'waiting degraded ExtenderNotAsked: start-again, wait, look-at-volumes': {
    'it has the default scheduler': {
      pod: { spec: { schedulerName: 'default-scheduler' }, status: REFUSED },
      console: 'NoNodeFits',
    },
  },
  'waiting waiting NoNodeFits: uncordon, start-again': {
    'it has another scheduler': {
      pod: { spec: { schedulerName: 'tenant-scheduler' }, status: REFUSED },
      node: CORDONED,
    },
  },
  'starting waiting Starting': {
    starting: STARTING,
    'its place was reported lost, but its kubelet has admitted it': {
      ...STARTING,
      report: WHOLE,
      events: [event('FailedToStart', LOST)],
    },
    'Events that its user wrote change nothing': {
      ...STARTING,
      events: ['CannotEvict', 'FailedToStart', 'FailedCreatePodSandBox'].map((reason) =>
        event(reason, `${LOST}: the DPU has died`, { component: 'a-user' }),
      ),
    },
  },
  'starting waiting AllocationRefused: wait': {
    'the agent refuses its CPUs': { pod: { spec: ON_NODE }, report: { refusals: [REFUSAL] } },
  },
  'starting waiting AllocationRefused: delete-pod': {
    'the agent refuses its CPUs, and the extender does not evict it': {
      pod: { spec: ON_NODE },
      report: { refusals: [REFUSAL] },
      events: [event('FailedToStart', `${NODE}: ${REFUSAL.message}`)],
    },
  },
  'starting waiting PlaceLost: delete-pod': {
    'its place is lost, and the extender does not evict it': { ...STARTING, events: [event('FailedToStart', LOST)] },
  },
  'starting broken CannotEvict: remove-what-denies-eviction': {
    'it cannot start and cannot be evicted': {
      ...STARTING,
      events: [event('CannotEvict', 'the API server denies it (429)')],
    },
  },
  'starting broken DPUNotReady: bring-dpu-back': { 'the DPU died before it started': { ...STARTING, node: DEAD_DPU } },
  'running ok Aligned': {
    'runs as promised': { pod: NETWORKED, report: WHOLE },
    'its migration was cancelled': {
      ...COPYING,
      vmi: recorded(CANCELLED),
      target: target({ ...ON_TARGET, status: { phase: 'Failed' } }),
      migrations: [move('Failed')],
    },
    'its second migration was cancelled and is gone, and its target still ends': {
      ...COPYING,
      vmi: recorded({ ...CANCELLED, migrationUid: 'm2' }),
      target: target(ON_TARGET, 'm2'),
      migrations: [move('Succeeded', { creationTimestamp: SECONDS_AGO(600) })],
    },
    'its migration failed': {
      ...COPYING,
      vmi: recorded(FAILED),
      target: target({ ...ON_TARGET, status: { phase: 'Failed' } }),
      migrations: [move('Failed')],
    },
    'has been handed over to its target, and KubeVirt has not recorded the end of its migration yet': {
      ...COPYING,
      vmi: recorded({}, NODE_2),
      guest: TARGET,
    },
    'has migrated, and its old launcher still runs': MIGRATED,
    'has migrated, and its old launcher has ended': { ...MIGRATED, pod: SUCCEEDED, report: {} },
    'has a launcher of an earlier start that still ends': {
      vmi: RUNS_ON(NODE),
      ...PLACED,
      second: {},
      target: {
        ...ON_TARGET,
        metadata: { ...TARGET_ID, creationTimestamp: SECONDS_AGO(900), deletionTimestamp: SECONDS_AGO(20) },
      },
    },
  },
  'not-as-requested broken DPUNotReady: bring-dpu-back, place-again': {
    'runs on a node whose DPU is dead': { pod: NETWORKED, report: WHOLE, node: DEAD_DPU },
    'asked about by its launcher': { ...PLACED, node: DEAD_DPU, subject: ['pod', LAUNCHER] },
  },
  'not-as-requested broken NetworkLost: place-again, forget-restart': {
    'lost its network when the DPU of its node restarted': { pod: NETWORKED, report: WHOLE, node: RESTARTED_DPU },
  },
  'not-as-requested degraded SplitCores: place-again': {
    'shares cores with others': { pod: RUNNING, report: owns('1-4') },
    'shares cores with others and cannot migrate': { vmi: cannotMigrate(), pod: RUNNING, report: owns('1-4') },
    'an instance that no VM made: no command of a VM is advised': { vm: null, pod: RUNNING, report: owns('1-4') },
    'has migrated onto half cores': { ...MIGRATED, pod: SUCCEEDED, report: {}, second: ownsThere('1-4') },
  },
  'not-as-requested waiting ChangePending: place-again': {
    'has new vCPUs and cannot migrate': { vmi: cannotMigrate({ type: 'HotVCPUChange', status: 'True' }), ...PLACED },
  },
  'not-as-requested degraded NetworkElsewhere: place-again': {
    'is far from its network': { pod: NETWORKED, report: owns('8-9,24-25') },
  },
  'not-as-requested degraded NetworkGone: bring-network-back': {
    'its network has left the node': { pod: NETWORKED, report: owns('1-2,17-18', { physnets: [] }) },
  },
  'not-as-requested degraded NetworkGone: repair-network-map': {
    'its network has left the node, whose network map is broken': {
      pod: NETWORKED,
      report: owns('1-2,17-18', { physnets: [], ...BROKEN_MAP }),
    },
  },
  'not-as-requested degraded SplitCores: repair-network-map': {
    'shares cores with others on a node whose network map is broken': {
      pod: NETWORKED,
      report: owns('1-4', { physnets: [], ...BROKEN_MAP }),
    },
  },
  'waiting waiting NoNodeFits: repair-network-map': {
    'waits for a network that a node lacks whose network map is broken': {
      pod: { status: REFUSED, resources: PHYSNET0 },
      report: { physnets: [], ...BROKEN_MAP },
    },
  },
  'not-as-requested degraded NetworkNotReported: start-again': {
    'no node reported its network when it started': {
      pod: {
        ...RUNNING,
        metadata: { annotations: { ...ANNOTATED, 'plumbline.dev/decision': JSON.stringify(WITHOUT_DEVICE) } },
      },
      report: WHOLE,
    },
  },
  'not-as-requested degraded NetworkUnplaced: check-network-name': {
    'its network’s NUMA node is unknown': {
      pod: NETWORKED,
      report: owns('1-2,17-18', { physnets: [{ name: 'physnet0', cells: '' }] }),
    },
  },
  'not-as-requested degraded NotReported: check-agent': { 'no agent reports its CPUs': { pod: RUNNING } },
  'not-as-requested degraded AgentSilent: check-agent': { 'its node’s agent is silent': { ...PLACED, agentAge: 600 } },
  'running ok SharedCpus: dedicate-cpus': {
    'without dedicated CPUs': {
      pod: {
        metadata: { annotations: {} },
        spec: { ...ON_NODE, containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }] },
        status: { phase: 'Running' },
      },
    },
  },
  'paused waiting Starting: wait': { 'just started, and its agent has not reported': PAUSED_MASKED },
  'paused broken PinningNotReported: check-agent': {
    'paused until its agent reports': {
      ...PAUSED_MASKED,
      vmi: pausedVmi(`paused ${SECONDS_AGO(130)}`, SECONDS_AGO(130)),
    },
  },
  'paused broken PinningRefused: correct-mask': {
    'paused, and its agent refuses the mask': {
      ...PAUSED_MASKED,
      report: pinning('refused', { reason: 'Empty', message: 'it leaves vCPU 0 without a CPU' }),
    },
  },
  'paused waiting AboutToResume: wait': {
    'pinned, and not resumed yet by the extender': { ...PAUSED_MASKED, report: pinning('pinned') },
  },
  'paused broken NotResumed: read-extender-log': {
    'pinned, and not resumed for minutes': {
      vm: maskedVm,
      vmi: pausedVmi(`paused ${SECONDS_AGO(130)}`, SECONDS_AGO(130)),
      pod: masked(),
      report: pinning('pinned'),
    },
  },
  'paused stopped Paused: unpause': {
    'paused by its user': { vm: maskedVm, vmi: pausedVmi('resumed'), pod: masked(), report: pinning('pinned') },
  },
  'running ok MaskApplied': { 'pinned by its mask': { ...RUNNING_MASKED, report: pinning('pinned') } },
  'running ok MaskFellBack': {
    'its mask could not be satisfied, and all is used instead': {
      ...RUNNING_MASKED,
      report: pinning('pinned', { reason: 'FellBack', message: '"all" was taken for it' }),
    },
  },
  'not-as-requested degraded MaskNotApplied: correct-mask': {
    'its mask is no longer satisfied': {
      ...RUNNING_MASKED,
      report: pinning('unpinned', { reason: 'Threads', message: 'found those of 0' }),
    },
  },
  'not-as-requested degraded MaskNotReported: check-agent': { 'no agent reports its mask': RUNNING_MASKED },
  'migrating ok Migrating': {
    'migrates, and its target has no launcher': {
      ...MIGRATING,
      migration: { phase: 'pending', source: NODE },
      console: 'Migrating',
    },
    'migrates, and its target starts': { ...PREPARING, migrations: [move('Scheduled')] },
    'migrates, and its target is ready': {
      ...COPYING,
      vmi: RUNS_ON(NODE, { migrationState: { migrationUid: 'm1', targetNode: NODE_2 } }),
      migrations: [move('TargetReady')],
      ...IN_PHASE('preparing'),
    },
    'migrates: its memory is copied': { ...COPYING, migration: AWAY },
    'migrates, by post-copy': { ...COPYING, vmi: recorded({ mode: 'PostCopy' }), ...IN_PHASE('post-copy') },
    'migrates, with a CPU mask that is applied once it is there': {
      ...COPYING,
      vm: maskedVm,
      vmi: {
        metadata: { annotations: MASK },
        ...RUNS_ON(NODE, { migrationState: STARTED, activePods: { 'pod-uid': NODE, 'target-uid': NODE_2 } }),
      },
      pod: masked(),
      target: target({ ...masked(TO_NODE_2), metadata: { annotations: { ...MASK, ...SEEN } } }),
      report: pinning('pinned'),
      second: {},
      migration: AWAY,
    },
    'its migration is being cancelled': {
      ...COPYING,
      migrations: [move('Running', { deletionTimestamp: SECONDS_AGO(1) })],
      ...IN_PHASE('cancelling'),
    },
    'its migration is being cancelled; migrations cannot be read': {
      ...COPYING,
      vmi: recorded({ abortRequested: true }),
      migrations: [],
      ...IN_PHASE('cancelling'),
    },
    'is drained, and KubeVirt has not started its migration': {
      ...MIGRATING,
      vmi: RUNS_ON(NODE, { evacuationNodeName: NODE }),
      migrations: [],
      migration: { phase: 'requested', source: NODE },
    },
    'has been handed over by post-copy, and fetches the rest of its memory': {
      ...COPYING,
      vmi: recorded({ mode: 'PostCopy' }, NODE_2),
      guest: TARGET,
      migration: { ...AWAY, phase: 'post-copy', node: NODE_2 },
    },
    'migrates for the second time': {
      ...COPYING,
      vmi: recorded({ migrationUid: 'm2' }),
      pod: { ...RUNNING, metadata: { labels: MADE_BY('m1') } },
      target: target(ON_TARGET, 'm2'),
      migrations: [
        move('Succeeded', { creationTimestamp: SECONDS_AGO(300) }),
        move('Running', { name: 'fw-move-2', uid: 'm2' }),
      ],
      migration: AWAY,
    },
    'migrates, and nothing but the label of its target says so': { ...PREPARING, migrations: [] },
  },
  'migrating waiting MigrationWaits: cancel-migration': {
    'migrates, and the quota has no room for its target': {
      ...MIGRATING,
      migrations: [{ status: { phase: 'Pending', conditions: [OVER_QUOTA] } }],
      migration: { phase: 'pending', source: NODE },
    },
  },
  'migrating waiting MigrationWaits: bring-scheduler-back, cancel-migration': {
    'migrates, and no scheduler has tried its target': { ...SCHEDULING, target: target() },
  },
  'migrating waiting MigrationWaits: ask-for-less, cancel-migration': {
    'migrates, and no node can take its target': { ...SCHEDULING, target: target(HUGE) },
    'is drained, and its target waits; migrations cannot be read': {
      ...SCHEDULING,
      migrations: [],
      vmi: RUNS_ON(NODE, { evacuationNodeName: NODE }),
      node: CORDONED,
      target: target(HUGE),
    },
  },
  'migrating waiting MigrationWaits: free-whole-cores, cancel-migration': {
    'migrates, and only its own node has room, which its anti-affinity excludes': {
      ...SCHEDULING,
      second: { report: busy('1-15,17-31') },
      target: target({ spec: { schedulerName: 'plumbline-scheduler', affinity: APART }, status: REFUSED }),
    },
  },
  'migrating waiting MigrationWaits: select-nodes, cancel-migration': {
    'is drained, its anti-affinity excludes its node, and the other one has no static CPU manager': {
      ...SCHEDULING,
      node: { labels: DEDICATED, spec: { unschedulable: true } },
      target: target({
        spec: { schedulerName: 'plumbline-scheduler', affinity: APART, nodeSelector: DEDICATED },
        status: REFUSED,
      }),
    },
  },
  'migrating waiting MigrationWaits: wait, cancel-migration': {
    'migrates, and the agent there refuses the CPUs of its target': {
      ...PREPARING,
      second: { report: { refusals: [{ ...REFUSAL, ...TARGET_OWNER }] } },
    },
  },
  'migrating waiting MigrationWaits: bring-dpu-back, cancel-migration': {
    'migrates, and the DPU there is dead before its target starts': { ...PREPARING, second: { node: DEAD_DPU } },
  },
  'migrating waiting MigrationWaits: start-again, cancel-migration': {
    'migrates, and the kubelet there rejected its target': {
      ...PREPARING,
      target: target({ spec: TO_NODE_2, status: { phase: 'Failed', reason: 'SMTAlignmentError', message: SMT } }),
    },
  },
  'migrating degraded Migrating': {
    'migrates to half cores': { ...COPYING, second: ownsThere('1-4'), migration: AWAY },
  },
  'migrating degraded MigrationWaits: ask-for-less, cancel-migration': {
    'migrates from half cores, and its target waits': { ...SCHEDULING, report: owns('1-4'), target: target(HUGE) },
  },
  'migrating degraded Migrating: check-agent': {
    'migrates from a node whose agent is silent': { ...COPYING, agentAge: 600, migration: AWAY },
    'migrates to a node whose agent is silent': { ...COPYING, second: { ...SECOND, agentAge: 600 }, migration: AWAY },
  },
  'migrating waiting MigrationWaits': {
    'is drained, and its migration failed': {
      ...MIGRATING,
      vmi: RUNS_ON(NODE, { migrationState: { ...STARTED, ...FAILED }, evacuationNodeName: NODE }),
      migrations: [move('Failed')],
      migration: { phase: 'retrying', source: NODE },
    },
  },
  'not-as-requested waiting ChangePending: migrate': {
    'has new vCPUs after a migration only': { vmi: changes('HotVCPUChange'), ...PLACED },
    'has a new network interface after a migration only': { vmi: changes('MigrationRequired'), ...PLACED },
  },
  'not-as-requested degraded RestartRequired: restart': {
    'must be restarted': {
      vm: { status: restart('a non-live-updatable field was changed in the template spec') },
      vmi: RUNS_ON(NODE),
      ...PLACED,
    },
  },
};

/** The table of states: a VM's state and the result of all of Plumbline's outputs. */
export const STATE_TABLE = Object.entries(ROWS).flatMap(([outcome, rows]) => {
  const [result = '', ids] = outcome.split(': ');
  const [state, verdict, reason] = result.split(' ') as [Stage, Verdict, Reason];
  const remedies = ids?.split(', ') ?? [];
  return Object.entries(rows).map(([title, row]): StateCase => {
    return { subject: ['vm', VM], ...row, title, state, verdict, reason, remedies, objects: cluster(row) };
  });
});
