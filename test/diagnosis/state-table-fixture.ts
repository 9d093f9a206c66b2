import type { Reason, Verdict } from '../../diagnosis/reasons.ts';
import type { Stage, VmState } from '../../diagnosis/state.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { PLACE_LOST } from '../../model/names.ts';
import { REPORT } from '../cli/cluster-fixture.ts';
import type { ApiObject, Objects } from '../cli/objects-api-stand-in.ts';

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

interface Parts {
  /** null: it does not exist. */
  readonly vm?: { readonly spec?: object; readonly status?: object } | null;
  readonly vmi?: { readonly metadata?: Metadata; readonly status?: object } | null;
  readonly pod?: {
    readonly cpus?: string;
    readonly metadata?: Metadata;
    readonly spec?: object;
    readonly status?: object;
    readonly resources?: Readonly<Record<string, string>>;
  } | null;
  readonly node?: { readonly conditions?: readonly object[]; readonly spec?: object; readonly labels?: object };
  /** null: it does not report. */
  readonly report?: Partial<NodeTopologyStatus> | null;
  readonly agentAge?: number;
  /** A second node, of the migration, and another launcher. */
  readonly second?: {
    readonly node?: Parts['node'];
    readonly report?: Partial<NodeTopologyStatus> | null;
    readonly agentAge?: number;
  };
  readonly target?: Parts['pod'];
  /** undefined: they cannot be read. */
  readonly migrations?: readonly { readonly metadata?: Metadata; readonly status?: object }[];
  readonly schedulerAge?: number | null;
  readonly events?: readonly {
    readonly name: string;
    readonly reason: string;
    readonly message: string;
    /** Default: the component that writes Events with this reason. */
    readonly component?: string;
  }[];
}

const ANNOTATED = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
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

const authorOf = (reason: string) => (reason.endsWith('Error') ? 'kubelet' : 'plumbline-scheduler-plugin');

const secondNode = ({ node = {}, report = {}, agentAge = 5 }: NonNullable<Parts['second']>) => {
  return { name: NODE_2, node, report, agentAge };
};

/** A cluster of one node with one VM, or of two while it migrates. */
function cluster(parts: Parts): Objects {
  const { vm = {}, vmi = {}, pod = {}, node = {}, report = {}, agentAge = 5, schedulerAge = 2, events = [] } = parts;
  const nodes = [
    { name: NODE, node, report, agentAge },
    ...(parts.second === undefined ? [] : [secondNode(parts.second)]),
  ];
  const namespace = 'tenants';
  const owner = (kind: string, name: string, uid: string) => [
    { apiVersion: 'kubevirt.io/v1', kind, name, uid, controller: true },
  ];
  const lease = (name: string, age: number, holderIdentity = name): ApiObject => ({
    metadata: { name, namespace: 'plumbline-system' },
    spec: { holderIdentity, leaseDurationSeconds: 40, renewTime: SECONDS_AGO(age).replace('Z', '000Z') },
  });
  return {
    '/api/v1/nodes': nodes.map(({ name, node, agentAge }) => ({
      metadata: { name, labels: { 'kubevirt.io/schedulable': 'true', 'kubernetes.io/hostname': name, ...node.labels } },
      spec: node.spec ?? {},
      status: {
        allocatable: {
          cpu: '30',
          memory: '64Gi',
          'devices.kubevirt.io/kvm': '1k',
          'physnet.plumbline.dev/physnet0': '110',
        },
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'plumbline.dev/AgentReady', status: agentAge > 40 ? 'False' : 'True' },
          ...(node.conditions ?? []),
        ],
      },
    })),
    '/api/v1/pods': [pod, parts.target ?? null].flatMap((parts) => {
      if (parts === null) return [];
      const amounts = { cpu: parts.cpus ?? '4', memory: '1Gi', 'devices.kubevirt.io/kvm': '1', ...parts.resources };
      const metadata = {
        name: LAUNCHER,
        namespace,
        uid: 'pod-uid',
        labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': 'vmi-uid' },
        ownerReferences: owner('VirtualMachineInstance', VM, 'vmi-uid'),
        annotations: DECIDED,
        creationTimestamp: SECONDS_AGO(60),
        ...parts.metadata,
      };
      const containers = [{ name: 'compute', resources: { requests: amounts, limits: amounts } }];
      const spec = { schedulerName: 'plumbline-scheduler', containers, ...parts.spec };
      return [{ metadata, spec, status: { phase: 'Pending', ...parts.status } }];
    }),
    '/api/v1/events': events.map(({ name, reason, message, component = authorOf(reason) }, i) => ({
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
    '/apis/plumbline.dev/v1alpha1/nodetopologies': nodes.flatMap(({ name, report }) => {
      const head = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name } };
      return report === null ? [] : [{ ...head, status: { ...REPORT, ...report } }];
    }),
    '/apis/coordination.k8s.io/v1/leases': [
      ...nodes.map(({ name, agentAge }) => lease(`plumbline-agent-${name}`, agentAge)),
      ...(schedulerAge === null ? [] : [lease('plumbline-scheduler', schedulerAge, 'plumbline-scheduler-1_x')]),
    ],
  };
}

const one = (
  title: string,
  [state, verdict, reason]: readonly [Stage, Verdict, Reason],
  remedies: readonly string[],
  parts: Parts,
  more: Partial<StateCase> = {},
): StateCase => ({ title, state, verdict, reason, remedies, objects: cluster(parts), subject: ['vm', VM], ...more });

const REFUSED = { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }] };
const ON_NODE = { nodeName: NODE, schedulerName: 'plumbline-scheduler' };
const RUNNING = { spec: ON_NODE, status: { phase: 'Running' } };
const denied = (message: string) => ({
  pod: null,
  vmi: { status: { phase: 'Pending', conditions: [{ type: 'Synchronized', status: 'False', message }] } },
});
const owns = (cpus: string, more: Partial<NodeTopologyStatus> = {}): Partial<NodeTopologyStatus> => ({
  assignments: [{ podUID: 'pod-uid', namespace: 'tenants', podName: LAUNCHER, container: 'compute', cpus }],
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
      message: '/etc/plumbline/networks.yaml: physnet0: NUMA node 9 is not on this host',
      lastTransitionTime: SECONDS_AGO(60),
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
const REFUSAL = {
  podUID: 'pod-uid',
  namespace: 'tenants',
  podName: LAUNCHER,
  container: 'compute',
  message: 'CPUs 1-2 are not whole cores',
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
  pinning: [{ podUID: 'pod-uid', namespace: 'tenants', podName: LAUNCHER, state, vcpus: 2, ...more }],
});
const pausedVmi = (record: string, since = SINCE) => ({
  metadata: { annotations: { ...MASK, 'plumbline.dev/paused-start': record } },
  status: {
    phase: 'Running',
    nodeName: NODE,
    activePods: { 'pod-uid': NODE },
    conditions: [
      {
        type: 'Paused',
        status: 'True',
        reason: 'PausedByUser',
        message: 'VMI was paused by user',
        lastTransitionTime: since,
      },
    ],
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
/** The launcher of a migration's target. */
const target = (parts: NonNullable<Parts['pod']> = {}, migration = 'm1'): NonNullable<Parts['pod']> => ({
  ...parts,
  metadata: {
    name: TARGET,
    uid: 'target-uid',
    labels: {
      'kubevirt.io': 'virt-launcher',
      'kubevirt.io/created-by': 'vmi-uid',
      'kubevirt.io/migrationJobUID': migration,
    },
    creationTimestamp: SECONDS_AGO(30),
    ...parts.metadata,
  },
});
const TO_NODE_2 = { nodeName: NODE_2, schedulerName: 'plumbline-scheduler' };
const ON_TARGET = { spec: TO_NODE_2, status: { phase: 'Running' } };
const ownsThere = (cpus: string) => ({
  report: {
    assignments: [{ podUID: 'target-uid', namespace: 'tenants', podName: TARGET, container: 'compute', cpus }],
  },
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
const APART = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      {
        labelSelector: { matchLabels: { 'kubevirt.io/created-by': 'vmi-uid' } },
        topologyKey: 'kubernetes.io/hostname',
      },
    ],
  },
};
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
const MOVED = { ...STARTED, endTimestamp: SECONDS_AGO(1), completed: true };
const FAILED_MOVE = { ...MOVED, failed: true, failureReason: 'the connection was lost' };
const AWAY = { phase: 'copying', source: NODE, target: NODE_2 } as const;
const changes = (type: string) => RUNS_ON(NODE, { conditions: [{ type, status: 'True' }] });
const restart = (message: string) => ({ conditions: [{ type: 'RestartRequired', status: 'True', message }] });

/** The table of states: a VM's state and the result of all of Plumbline's outputs. */
export const STATE_TABLE: readonly StateCase[] = [
  one('stopped', ['stopped', 'stopped', 'SwitchedOff'], ['start'], {
    vm: { spec: { runStrategy: 'Halted' } },
    vmi: null,
    pod: null,
  }),
  one('KubeVirt creates no instance', ['waiting', 'broken', 'NoInstance'], ['check-virt-controller'], {
    vmi: null,
    pod: null,
  }),
  one('KubeVirt creates no launcher', ['waiting', 'broken', 'NoLauncher'], ['check-virt-controller'], {
    pod: null,
    vmi: { status: { phase: 'Pending' } },
  }),
  one(
    'the webhook does not answer',
    ['waiting', 'broken', 'WebhookUnavailable'],
    ['bring-webhook-back'],
    denied('failed calling webhook "launcher.plumbline.dev": connection refused'),
  ),
  one(
    'the webhook denies the launcher',
    ['waiting', 'broken', 'WebhookDenied'],
    ['correct-vm'],
    denied('admission webhook "launcher.plumbline.dev" denied the request: plumbline: the CPU mask'),
  ),
  one(
    'the API server does not call the mutating webhook',
    ['waiting', 'broken', 'WebhookDenied'],
    ['bring-webhook-back'],
    denied(
      'admission webhook "final.plumbline.dev" denied the request: plumbline: the pod is without a decision of Plumbline',
    ),
  ),
  one(
    'over the quota, counting padding and side containers',
    ['waiting', 'broken', 'QuotaExceeded'],
    ['raise-quota'],
    denied('exceeded quota: cpus, requested: limits.cpu=6015m'),
  ),
  one(
    'over the LimitRange',
    ['waiting', 'broken', 'LimitRangeExceeded'],
    ['raise-limit-range'],
    denied('maximum cpu usage per Container is 4'),
  ),
  one(
    'denied by another webhook',
    ['waiting', 'broken', 'LauncherDenied'],
    ['correct-vm'],
    denied('admission webhook "policy.example.com" denied the request'),
  ),

  one('rejected: not annotated, no whole cores', ['failed', 'broken', 'UnalignedRejected'], ['add-annotation'], {
    pod: { ...rejected('SMTAlignmentError', SMT), cpus: '3', metadata: { annotations: {} } },
  }),
  one('rejected: annotated, while the webhook was down', ['failed', 'broken', 'UnpaddedRejected'], ['start-again'], {
    pod: { ...rejected('SMTAlignmentError', SMT), cpus: '3', metadata: { annotations: ANNOTATED } },
  }),
  one('rejected: another pod got its cores', ['failed', 'waiting', 'CoresTaken'], ['wait'], {
    pod: rejected(
      'SMTAlignmentError',
      'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2',
    ),
  }),
  one('rejected: no NUMA node has room', ['failed', 'broken', 'TopologyRejected'], ['check-extender'], {
    pod: rejected('TopologyAffinityError', 'Resources cannot be allocated with Topology locality'),
  }),
  one('rejected: another pod got a device', ['failed', 'waiting', 'AdmissionRejected'], ['wait'], {
    pod: rejected('UnexpectedAdmissionError', 'Allocate failed'),
  }),
  one(
    'a loop of rejections, of which KubeVirt has left only Events',
    ['failed', 'broken', 'UnalignedRejected'],
    ['add-annotation'],
    {
      vm: {
        spec: { template: { metadata: { annotations: {} }, spec: { domain: {} } } },
        status: { startFailure: { consecutiveFailCount: 3, retryAfterTimestamp: SECONDS_AGO(-40) } },
      },
      vmi: null,
      pod: null,
      events: [
        { name: 'virt-launcher-fw-2-zzzzz', reason: 'UnexpectedAdmissionError', message: 'of the VM fw-2' },
        { name: 'virt-launcher-fw-zzzzz', reason: 'SMTAlignmentError', message: SMT },
      ],
    },
    { console: 'NoInstance' },
  ),
  one(
    'evicted before it started',
    ['failed', 'waiting', 'EvictedBeforeStart'],
    ['look-at-successor'],
    {
      pod: { spec: ON_NODE, status: { phase: 'Failed', reason: 'Evicted' } },
      events: [{ name: LAUNCHER, reason: 'EvictedBeforeStart', message: 'the DPU has died' }],
    },
    { console: null },
  ),
  one(
    'failed, with an Event EvictedBeforeStart that its user wrote',
    ['failed', 'broken', 'Failed'],
    ['read-events'],
    {
      pod: { spec: ON_NODE, status: { phase: 'Failed', reason: 'OutOfcpu' } },
      events: [{ name: LAUNCHER, reason: 'EvictedBeforeStart', message: 'x', component: 'a-user' }],
    },
    { console: null },
  ),
  one('ended', ['stopped', 'stopped', 'Ended'], [], { pod: { spec: ON_NODE, status: { phase: 'Succeeded' } } }),
  one('being deleted', ['stopping', 'stopped', 'Deleting'], [], {
    pod: { ...RUNNING, metadata: { deletionTimestamp: SECONDS_AGO(3) } },
  }),

  one('behind a scheduling gate', ['waiting', 'waiting', 'Gated'], ['ask-the-gate-keeper'], {
    pod: { spec: { schedulerName: 'plumbline-scheduler', schedulingGates: [{ name: 'example.com/wait' }] } },
  }),
  one(
    'Plumbline’s scheduler does not run',
    ['waiting', 'broken', 'SchedulerAway'],
    ['bring-scheduler-back'],
    { schedulerAge: null },
    { coarse: 'SchedulerAway', console: 'NotTried' },
  ),
  one(
    'Plumbline’s scheduler is silent',
    ['waiting', 'broken', 'SchedulerAway'],
    ['bring-scheduler-back'],
    {
      schedulerAge: 300,
    },
    { console: 'NotTried' },
  ),
  {
    ...one(
      'the extender does not answer',
      ['waiting', 'broken', 'ExtenderAway'],
      ['bring-scheduler-back'],
      {},
      { status: 'NotTried', console: 'NotTried' },
    ),
    extenderAway: true,
  },
  one('no scheduler has tried it yet', ['waiting', 'waiting', 'NotTried'], ['bring-scheduler-back'], {}),
  one('the node is full', ['waiting', 'waiting', 'NoNodeFits'], ['free-whole-cores'], {
    pod: { status: REFUSED },
    report: busy('1-15,17-31'),
  }),
  one(
    'larger than any empty node',
    ['waiting', 'broken', 'TooLarge'],
    ['ask-for-less'],
    { pod: { cpus: '64', status: REFUSED } },
    { coarse: 'NoNodeFits' },
  ),
  one('the only node is cordoned', ['waiting', 'waiting', 'NoNodeFits'], ['uncordon'], {
    pod: { status: REFUSED },
    node: { spec: { unschedulable: true } },
  }),
  one('the only node’s DPU is dead', ['waiting', 'waiting', 'NoNodeFits'], ['bring-dpu-back'], {
    pod: { status: REFUSED },
    node: DEAD_DPU,
  }),
  one(
    'a node would accept it',
    ['waiting', 'waiting', 'RetryPending'],
    ['wait', 'look-at-volumes'],
    { pod: { status: REFUSED } },
    { coarse: 'NoNodeFits' },
  ),
  one('the webhook did not see it', ['waiting', 'broken', 'WebhookMissed'], ['start-again'], {
    pod: { cpus: '3', metadata: { annotations: ANNOTATED }, status: REFUSED },
  }),
  one(
    'it has a CPU mask, and the webhook did not see it',
    ['starting', 'degraded', 'NotDecided'],
    ['start-again'],
    {
      vm: maskedVm,
      pod: { ...masked(), metadata: { annotations: MASK }, status: { phase: 'Pending' } },
    },
    { console: null },
  ),
  one(
    'it has the default scheduler',
    ['waiting', 'degraded', 'ExtenderNotAsked'],
    ['start-again', 'wait', 'look-at-volumes'],
    { pod: { spec: { schedulerName: 'default-scheduler' }, status: REFUSED } },
    { console: 'NoNodeFits' },
  ),
  one('it has another scheduler', ['waiting', 'waiting', 'NoNodeFits'], ['uncordon', 'start-again'], {
    pod: { spec: { schedulerName: 'tenant-scheduler' }, status: REFUSED },
    node: { spec: { unschedulable: true } },
  }),

  one('starting', ['starting', 'waiting', 'Starting'], [], { pod: { spec: ON_NODE } }, { console: null }),
  one('the agent refuses its CPUs', ['starting', 'waiting', 'AllocationRefused'], ['wait'], {
    pod: { spec: ON_NODE },
    report: { refusals: [REFUSAL] },
  }),
  one(
    'the agent refuses its CPUs, and the extender does not evict it',
    ['starting', 'waiting', 'AllocationRefused'],
    ['delete-pod'],
    {
      pod: { spec: ON_NODE },
      report: { refusals: [REFUSAL] },
      events: [{ name: LAUNCHER, reason: 'FailedToStart', message: `${NODE}: ${REFUSAL.message}` }],
    },
  ),
  one(
    'its place is lost, and the extender does not evict it',
    ['starting', 'waiting', 'PlaceLost'],
    ['delete-pod'],
    {
      pod: { spec: ON_NODE },
      events: [{ name: LAUNCHER, reason: 'FailedToStart', message: LOST }],
    },
    { console: null },
  ),
  one(
    'its place was reported lost, but its kubelet has admitted it',
    ['starting', 'waiting', 'Starting'],
    [],
    {
      pod: { spec: ON_NODE },
      report: WHOLE,
      events: [{ name: LAUNCHER, reason: 'FailedToStart', message: LOST }],
    },
    { console: null },
  ),
  one(
    'it cannot start and cannot be evicted',
    ['starting', 'broken', 'CannotEvict'],
    ['remove-what-denies-eviction'],
    {
      pod: { spec: ON_NODE },
      events: [{ name: LAUNCHER, reason: 'CannotEvict', message: 'the API server denies it (429)' }],
    },
    { console: null },
  ),
  one(
    'Events that its user wrote change nothing',
    ['starting', 'waiting', 'Starting'],
    [],
    {
      pod: { spec: ON_NODE },
      events: ['CannotEvict', 'FailedToStart', 'FailedCreatePodSandBox'].map((reason) => {
        return { name: LAUNCHER, reason, message: `${LOST}: the DPU has died`, component: 'a-user' };
      }),
    },
    { console: null },
  ),
  one(
    'the DPU died before it started',
    ['starting', 'broken', 'DPUNotReady'],
    ['bring-dpu-back'],
    {
      pod: { spec: ON_NODE },
      node: DEAD_DPU,
    },
    { console: null },
  ),

  one('runs as promised', ['running', 'ok', 'Aligned'], [], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: WHOLE,
  }),
  one(
    'runs on a node whose DPU is dead',
    ['not-as-requested', 'broken', 'DPUNotReady'],
    ['bring-dpu-back', 'place-again'],
    {
      pod: { ...RUNNING, resources: PHYSNET0 },
      report: WHOLE,
      node: DEAD_DPU,
    },
  ),
  one(
    'lost its network when the DPU of its node restarted',
    ['not-as-requested', 'broken', 'NetworkLost'],
    ['place-again', 'forget-restart'],
    {
      pod: { ...RUNNING, resources: PHYSNET0 },
      report: WHOLE,
      node: RESTARTED_DPU,
    },
  ),
  one('shares cores with others', ['not-as-requested', 'degraded', 'SplitCores'], ['place-again'], {
    pod: RUNNING,
    report: owns('1-4'),
  }),
  one('shares cores with others and cannot migrate', ['not-as-requested', 'degraded', 'SplitCores'], ['place-again'], {
    vmi: cannotMigrate(),
    pod: RUNNING,
    report: owns('1-4'),
  }),
  one('has new vCPUs and cannot migrate', ['not-as-requested', 'waiting', 'ChangePending'], ['place-again'], {
    vmi: cannotMigrate({ type: 'HotVCPUChange', status: 'True' }),
    pod: RUNNING,
    report: WHOLE,
  }),
  one('is far from its network', ['not-as-requested', 'degraded', 'NetworkElsewhere'], ['place-again'], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: owns('8-9,24-25'),
  }),
  one('its network has left the node', ['not-as-requested', 'degraded', 'NetworkGone'], ['bring-network-back'], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: owns('1-2,17-18', { physnets: [] }),
  }),
  one(
    'its network has left the node, whose network map is broken',
    ['not-as-requested', 'degraded', 'NetworkGone'],
    ['repair-network-map'],
    { pod: { ...RUNNING, resources: PHYSNET0 }, report: owns('1-2,17-18', { physnets: [], ...BROKEN_MAP }) },
  ),
  one(
    'shares cores with others on a node whose network map is broken',
    ['not-as-requested', 'degraded', 'SplitCores'],
    ['repair-network-map'],
    { pod: { ...RUNNING, resources: PHYSNET0 }, report: owns('1-4', { physnets: [], ...BROKEN_MAP }) },
  ),
  one(
    'waits for a network that a node lacks whose network map is broken',
    ['waiting', 'waiting', 'NoNodeFits'],
    ['repair-network-map'],
    {
      pod: { status: REFUSED, resources: PHYSNET0 },
      report: { physnets: [], ...BROKEN_MAP },
    },
  ),
  one(
    'no node reported its network when it started',
    ['not-as-requested', 'degraded', 'NetworkNotReported'],
    ['start-again'],
    {
      pod: {
        ...RUNNING,
        metadata: {
          annotations: {
            ...ANNOTATED,
            'plumbline.dev/decision': JSON.stringify({
              cpus: { compute: 4 },
              padding: 1,
              withoutDevice: [{ interface: 'data', network: 'tenants/data', on: 'physnet physent0' }],
            }),
          },
        },
      },
      report: WHOLE,
    },
  ),
  one(
    'its network’s NUMA node is unknown',
    ['not-as-requested', 'degraded', 'NetworkUnplaced'],
    ['check-network-name'],
    {
      pod: { ...RUNNING, resources: PHYSNET0 },
      report: owns('1-2,17-18', { physnets: [{ name: 'physnet0', cells: '' }] }),
    },
  ),
  one('no agent reports its CPUs', ['not-as-requested', 'degraded', 'NotReported'], ['check-agent'], { pod: RUNNING }),
  one('its node’s agent is silent', ['not-as-requested', 'degraded', 'AgentSilent'], ['check-agent'], {
    pod: RUNNING,
    report: WHOLE,
    agentAge: 600,
  }),
  one('without dedicated CPUs', ['running', 'ok', 'SharedCpus'], ['dedicate-cpus'], {
    pod: {
      metadata: { annotations: {} },
      spec: { ...ON_NODE, containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }] },
      status: { phase: 'Running' },
    },
  }),

  one('just started, and its agent has not reported', ['paused', 'waiting', 'Starting'], ['wait'], {
    ...PAUSED_MASKED,
  }),
  one('paused until its agent reports', ['paused', 'broken', 'PinningNotReported'], ['check-agent'], {
    ...PAUSED_MASKED,
    vmi: pausedVmi(`paused ${SECONDS_AGO(130)}`, SECONDS_AGO(130)),
  }),
  one('paused, and its agent refuses the mask', ['paused', 'broken', 'PinningRefused'], ['correct-mask'], {
    ...PAUSED_MASKED,
    report: pinning('refused', { reason: 'Empty', message: 'it leaves vCPU 0 without a CPU' }),
  }),
  one('pinned, and not resumed yet by the extender', ['paused', 'waiting', 'AboutToResume'], ['wait'], {
    ...PAUSED_MASKED,
    report: pinning('pinned'),
  }),
  one('pinned, and not resumed for minutes', ['paused', 'broken', 'NotResumed'], ['read-extender-log'], {
    vm: maskedVm,
    vmi: pausedVmi(`paused ${SECONDS_AGO(130)}`, SECONDS_AGO(130)),
    pod: masked(),
    report: pinning('pinned'),
  }),
  one('paused by its user', ['paused', 'stopped', 'Paused'], ['unpause'], {
    vm: maskedVm,
    vmi: pausedVmi('resumed'),
    pod: masked(),
    report: pinning('pinned'),
  }),
  one('pinned by its mask', ['running', 'ok', 'MaskApplied'], [], {
    ...RUNNING_MASKED,
    report: pinning('pinned'),
  }),
  one('its mask could not be satisfied, and all is used instead', ['running', 'ok', 'MaskFellBack'], [], {
    ...RUNNING_MASKED,
    report: pinning('pinned', { reason: 'FellBack', message: '"all" was taken for it' }),
  }),
  one('its mask is no longer satisfied', ['not-as-requested', 'degraded', 'MaskNotApplied'], ['correct-mask'], {
    ...RUNNING_MASKED,
    report: pinning('unpinned', { reason: 'Threads', message: 'found those of 0' }),
  }),
  one('no agent reports its mask', ['not-as-requested', 'degraded', 'MaskNotReported'], ['check-agent'], {
    ...RUNNING_MASKED,
  }),
  one(
    'an instance that no VM made: no command of a VM is advised',
    ['not-as-requested', 'degraded', 'SplitCores'],
    ['place-again'],
    { vm: null, pod: RUNNING, report: owns('1-4') },
  ),
  {
    ...one(
      'asked about by its launcher',
      ['not-as-requested', 'broken', 'DPUNotReady'],
      ['bring-dpu-back', 'place-again'],
      {
        pod: RUNNING,
        report: WHOLE,
        node: DEAD_DPU,
      },
    ),
    subject: ['pod', LAUNCHER],
  },

  one('migrates, and its target has no launcher', ['migrating', 'ok', 'Migrating'], [], MIGRATING, {
    migration: { phase: 'pending', source: NODE },
    console: 'Migrating',
  }),
  one(
    'migrates, and the quota has no room for its target',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['cancel-migration'],
    {
      ...MIGRATING,
      migrations: [
        {
          status: {
            phase: 'Pending',
            conditions: [
              { type: 'migrationRejectedByResourceQuota', status: 'True', message: 'exceeded quota: limits.cpu' },
            ],
          },
        },
      ],
    },
    { migration: { phase: 'pending', source: NODE } },
  ),
  one(
    'migrates, and no scheduler has tried its target',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['bring-scheduler-back', 'cancel-migration'],
    { ...MIGRATING, target: target() },
    { migration: { phase: 'scheduling', source: NODE } },
  ),
  one(
    'migrates, and no node can take its target',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['ask-for-less', 'cancel-migration'],
    { ...MIGRATING, target: target({ cpus: '64', status: REFUSED }) },
    { migration: { phase: 'scheduling', source: NODE } },
  ),
  one(
    'is drained, and its target waits; migrations cannot be read',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['ask-for-less', 'cancel-migration'],
    {
      ...MIGRATING,
      migrations: [],
      vmi: RUNS_ON(NODE, { evacuationNodeName: NODE }),
      node: { spec: { unschedulable: true } },
      target: target({ cpus: '64', status: REFUSED }),
    },
    { migration: { phase: 'scheduling', source: NODE } },
  ),
  one(
    'migrates, and only its own node has room, which its anti-affinity excludes',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['free-whole-cores', 'cancel-migration'],
    {
      ...MIGRATING,
      second: { report: busy('1-15,17-31') },
      target: target({ spec: { schedulerName: 'plumbline-scheduler', affinity: APART }, status: REFUSED }),
    },
    { migration: { phase: 'scheduling', source: NODE } },
  ),
  one(
    'is drained, its anti-affinity excludes its node, and the other one has no static CPU manager',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['select-nodes', 'cancel-migration'],
    {
      ...MIGRATING,
      node: { labels: DEDICATED, spec: { unschedulable: true } },
      target: target({
        spec: { schedulerName: 'plumbline-scheduler', affinity: APART, nodeSelector: DEDICATED },
        status: REFUSED,
      }),
    },
    { migration: { phase: 'scheduling', source: NODE } },
  ),
  one(
    'migrates, and its target starts',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...MIGRATING,
      target: target({ spec: TO_NODE_2 }),
      migrations: [move('Scheduled')],
    },
    { migration: { phase: 'preparing', source: NODE, target: NODE_2 } },
  ),
  one(
    'migrates, and the agent there refuses the CPUs of its target',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['wait', 'cancel-migration'],
    {
      ...MIGRATING,
      target: target({ spec: TO_NODE_2 }),
      second: { report: { refusals: [{ ...REFUSAL, podUID: 'target-uid', podName: TARGET }] } },
    },
    { migration: { phase: 'preparing', source: NODE, target: NODE_2 } },
  ),
  one(
    'migrates, and the DPU there is dead before its target starts',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['bring-dpu-back', 'cancel-migration'],
    { ...MIGRATING, target: target({ spec: TO_NODE_2 }), second: { node: DEAD_DPU } },
    { migration: { phase: 'preparing', source: NODE, target: NODE_2 } },
  ),
  one(
    'migrates, and the kubelet there rejected its target',
    ['migrating', 'waiting', 'MigrationWaits'],
    ['start-again', 'cancel-migration'],
    {
      ...MIGRATING,
      target: target({ spec: TO_NODE_2, status: { phase: 'Failed', reason: 'SMTAlignmentError', message: SMT } }),
    },
    { migration: { phase: 'preparing', source: NODE, target: NODE_2 } },
  ),
  one(
    'migrates, and its target is ready',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE, { migrationState: { migrationUid: 'm1', targetNode: NODE_2 } }),
      migrations: [move('TargetReady')],
    },
    { migration: { ...AWAY, phase: 'preparing' } },
  ),
  one('migrates: its memory is copied', ['migrating', 'ok', 'Migrating'], [], COPYING, { migration: AWAY }),
  one(
    'migrates, by post-copy',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE, { migrationState: { ...STARTED, mode: 'PostCopy' } }),
    },
    { migration: { ...AWAY, phase: 'post-copy' } },
  ),
  one(
    'migrates to half cores',
    ['migrating', 'degraded', 'Migrating'],
    [],
    {
      ...COPYING,
      second: ownsThere('1-4'),
    },
    { migration: AWAY },
  ),
  one(
    'migrates from half cores, and its target waits',
    ['migrating', 'degraded', 'MigrationWaits'],
    ['ask-for-less', 'cancel-migration'],
    {
      ...MIGRATING,
      report: owns('1-4'),
      target: target({ cpus: '64', status: REFUSED }),
    },
    { migration: { phase: 'scheduling', source: NODE } },
  ),
  one(
    'migrates from a node whose agent is silent',
    ['migrating', 'degraded', 'Migrating'],
    ['check-agent'],
    {
      ...COPYING,
      agentAge: 600,
    },
    { migration: AWAY },
  ),
  one(
    'migrates to a node whose agent is silent',
    ['migrating', 'degraded', 'Migrating'],
    ['check-agent'],
    {
      ...COPYING,
      second: { ...SECOND, agentAge: 600 },
    },
    { migration: AWAY },
  ),
  one(
    'migrates, with a CPU mask that is applied once it is there',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
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
    },
    { migration: AWAY },
  ),
  one(
    'its migration is being cancelled',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...COPYING,
      migrations: [move('Running', { deletionTimestamp: SECONDS_AGO(1) })],
    },
    { migration: { ...AWAY, phase: 'cancelling' } },
  ),
  one(
    'its migration is being cancelled; migrations cannot be read',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE, { migrationState: { ...STARTED, abortRequested: true } }),
      migrations: [],
    },
    { migration: { ...AWAY, phase: 'cancelling' } },
  ),
  one('its migration was cancelled', ['running', 'ok', 'Aligned'], [], {
    ...COPYING,
    vmi: RUNS_ON(NODE, { migrationState: { ...FAILED_MOVE, abortRequested: true, abortStatus: 'Succeeded' } }),
    target: target({ ...ON_TARGET, status: { phase: 'Failed' } }),
    migrations: [move('Failed')],
  }),
  one('its second migration was cancelled and is gone, and its target still ends', ['running', 'ok', 'Aligned'], [], {
    ...COPYING,
    vmi: RUNS_ON(NODE, {
      migrationState: { ...FAILED_MOVE, migrationUid: 'm2', abortRequested: true, abortStatus: 'Succeeded' },
    }),
    target: target(ON_TARGET, 'm2'),
    migrations: [move('Succeeded', { creationTimestamp: SECONDS_AGO(600) })],
  }),
  one('its migration failed', ['running', 'ok', 'Aligned'], [], {
    ...COPYING,
    vmi: RUNS_ON(NODE, { migrationState: FAILED_MOVE }),
    target: target({ ...ON_TARGET, status: { phase: 'Failed' } }),
    migrations: [move('Failed')],
  }),
  one(
    'is drained, and its migration failed',
    ['migrating', 'waiting', 'MigrationWaits'],
    [],
    {
      ...MIGRATING,
      vmi: RUNS_ON(NODE, { migrationState: FAILED_MOVE, evacuationNodeName: NODE }),
      migrations: [move('Failed')],
    },
    { migration: { phase: 'retrying', source: NODE } },
  ),
  one(
    'is drained, and KubeVirt has not started its migration',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...MIGRATING,
      vmi: RUNS_ON(NODE, { evacuationNodeName: NODE }),
      migrations: [],
    },
    { migration: { phase: 'requested', source: NODE } },
  ),
  one(
    'has been handed over to its target, and KubeVirt has not recorded the end of its migration yet',
    ['running', 'ok', 'Aligned'],
    [],
    { ...COPYING, vmi: RUNS_ON(NODE_2, { migrationState: STARTED }) },
    { guest: TARGET },
  ),
  one(
    'has been handed over by post-copy, and fetches the rest of its memory',
    ['migrating', 'ok', 'Migrating'],
    [],
    { ...COPYING, vmi: RUNS_ON(NODE_2, { migrationState: { ...STARTED, mode: 'PostCopy' } }) },
    { guest: TARGET, migration: { ...AWAY, phase: 'post-copy', node: NODE_2 } },
  ),
  one(
    'has migrated, and its old launcher still runs',
    ['running', 'ok', 'Aligned'],
    [],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE_2, { migrationState: MOVED }),
      migrations: [move('Succeeded')],
    },
    { guest: TARGET },
  ),
  one(
    'has migrated, and its old launcher has ended',
    ['running', 'ok', 'Aligned'],
    [],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE_2, { migrationState: MOVED }),
      pod: { spec: ON_NODE, status: { phase: 'Succeeded' } },
      report: {},
      migrations: [move('Succeeded')],
    },
    { guest: TARGET },
  ),
  one(
    'has migrated onto half cores',
    ['not-as-requested', 'degraded', 'SplitCores'],
    ['place-again'],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE_2, { migrationState: MOVED }),
      pod: { spec: ON_NODE, status: { phase: 'Succeeded' } },
      report: {},
      second: ownsThere('1-4'),
      migrations: [move('Succeeded')],
    },
    { guest: TARGET },
  ),
  one(
    'migrates for the second time',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...COPYING,
      vmi: RUNS_ON(NODE, { migrationState: { ...STARTED, migrationUid: 'm2' } }),
      pod: {
        ...RUNNING,
        metadata: {
          labels: {
            'kubevirt.io': 'virt-launcher',
            'kubevirt.io/created-by': 'vmi-uid',
            'kubevirt.io/migrationJobUID': 'm1',
          },
        },
      },
      target: target(ON_TARGET, 'm2'),
      migrations: [
        move('Succeeded', { creationTimestamp: SECONDS_AGO(300) }),
        move('Running', { name: 'fw-move-2', uid: 'm2' }),
      ],
    },
    { migration: AWAY },
  ),
  one(
    'migrates, and nothing but the label of its target says so',
    ['migrating', 'ok', 'Migrating'],
    [],
    {
      ...MIGRATING,
      target: target({ spec: TO_NODE_2 }),
      migrations: [],
    },
    { migration: { phase: 'preparing', source: NODE, target: NODE_2 } },
  ),
  one('is deleted while it migrates', ['stopping', 'stopped', 'Deleting'], [], {
    ...COPYING,
    vmi: { ...COPYING.vmi, metadata: { deletionTimestamp: SECONDS_AGO(1) } },
  }),
  one('has a launcher of an earlier start that still ends', ['running', 'ok', 'Aligned'], [], {
    vmi: RUNS_ON(NODE),
    pod: RUNNING,
    report: WHOLE,
    second: {},
    target: {
      spec: TO_NODE_2,
      status: { phase: 'Running' },
      metadata: {
        name: TARGET,
        uid: 'target-uid',
        creationTimestamp: SECONDS_AGO(900),
        deletionTimestamp: SECONDS_AGO(20),
      },
    },
  }),

  one('has new vCPUs after a migration only', ['not-as-requested', 'waiting', 'ChangePending'], ['migrate'], {
    vmi: changes('HotVCPUChange'),
    pod: RUNNING,
    report: WHOLE,
  }),
  one(
    'has a new network interface after a migration only',
    ['not-as-requested', 'waiting', 'ChangePending'],
    ['migrate'],
    {
      vmi: changes('MigrationRequired'),
      pod: RUNNING,
      report: WHOLE,
    },
  ),
  one('must be restarted', ['not-as-requested', 'degraded', 'RestartRequired'], ['restart'], {
    vm: { status: restart('a non-live-updatable field was changed in the template spec') },
    vmi: RUNS_ON(NODE),
    pod: RUNNING,
    report: WHOLE,
  }),
  one('must be restarted for its new instance type', ['not-as-requested', 'degraded', 'RestartRequired'], ['restart'], {
    vm: { spec: { instancetype: { name: 'large' } }, status: restart('the instance type was changed') },
    vmi: RUNS_ON(NODE),
    pod: RUNNING,
    report: WHOLE,
  }),
];
