import type { Reason, Stage, Verdict } from '../../diagnosis/reasons.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { placeLostText } from '../../scheduler-plugin/controllers/evictions.ts';
import { REPORT } from './cluster-fixture.ts';
import type { ApiObject, Objects } from './objects-api.ts';

/** The time of all states. */
export const NOW = Date.parse('2026-11-01T10:00:00Z');
const SECONDS_AGO = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();
export const NODE = 'n1';
const VM = 'fw';
const LAUNCHER = 'virt-launcher-fw-abcde';

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
const DEAD_DPU = {
  conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'last renewal 61 s ago' }],
  labels: { 'k8s.ovn.org/dpu-host': '' },
};
const SINCE = SECONDS_AGO(20);

const authorOf = (reason: string) => (reason.endsWith('Error') ? 'kubelet' : 'plumbline-scheduler-plugin');

/** A cluster of one node with one VM. */
function cluster(parts: Parts): Objects {
  const { vm = {}, vmi = {}, pod = {}, node = {}, report = {}, agentAge = 5, schedulerAge = 2, events = [] } = parts;
  const namespace = 'tenants';
  const owner = (kind: string, name: string, uid: string) => [
    { apiVersion: 'kubevirt.io/v1', kind, name, uid, controller: true },
  ];
  const amounts = { cpu: pod?.cpus ?? '4', memory: '1Gi', 'devices.kubevirt.io/kvm': '1', ...pod?.resources };
  const lease = (name: string, age: number, holderIdentity = name): ApiObject => ({
    metadata: { name, namespace: 'plumbline-system' },
    spec: { holderIdentity, leaseDurationSeconds: 40, renewTime: SECONDS_AGO(age).replace('Z', '000Z') },
  });
  return {
    '/api/v1/nodes': [
      {
        metadata: { name: NODE, labels: { 'kubevirt.io/schedulable': 'true', ...node.labels } },
        spec: node.spec ?? {},
        status: {
          allocatable: {
            cpu: '30',
            memory: '64Gi',
            'devices.kubevirt.io/kvm': '1k',
            'physnet.plumbline.dev/physnet0': '110',
          },
          conditions: [{ type: 'Ready', status: 'True' }, ...(node.conditions ?? [])],
        },
      },
    ],
    '/api/v1/pods': [pod].flatMap((parts) => {
      if (parts === null) return [];
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
      return [{ metadata: { name: VM, namespace }, spec, status: parts.status ?? {} }];
    }),
    '/apis/kubevirt.io/v1/virtualmachineinstances': [vmi].flatMap((parts) => {
      if (parts === null) return [];
      const ownerReferences = vm === null ? undefined : owner('VirtualMachine', VM, 'vm-uid');
      const metadata = { name: VM, namespace, uid: 'vmi-uid', annotations: {}, ownerReferences, ...parts.metadata };
      return [{ metadata, spec: { domain: {} }, status: { phase: 'Scheduling', ...parts.status } }];
    }),
    '/apis/plumbline.dev/v1alpha1/nodetopologies': [report].flatMap((parts) => {
      const head = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name: NODE } };
      return parts === null ? [] : [{ ...head, status: { ...REPORT, ...parts } }];
    }),
    '/apis/coordination.k8s.io/v1/leases': [
      lease(`plumbline-agent-${NODE}`, agentAge),
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

/** The table of states: a VM's state and the result of all of Plumbline's outputs. */
export const STATE_TABLE: readonly StateCase[] = [
  one('stopped', ['stopped', 'stopped', 'SwitchedOff'], ['start'], {
    vm: { spec: { runStrategy: 'Halted' } },
    vmi: null,
    pod: null,
  }),
  one('KubeVirt creates no instance', ['no-launcher', 'broken', 'NoInstance'], ['check-virt-controller'], {
    vmi: null,
    pod: null,
  }),
  one('KubeVirt creates no launcher', ['no-launcher', 'broken', 'NoLauncher'], ['check-virt-controller'], {
    pod: null,
    vmi: { status: { phase: 'Pending' } },
  }),
  one(
    'the webhook does not answer',
    ['no-launcher', 'broken', 'WebhookUnavailable'],
    ['bring-webhook-back'],
    denied('failed calling webhook "launcher.plumbline.dev": connection refused'),
  ),
  one(
    'the webhook denies the launcher',
    ['no-launcher', 'broken', 'WebhookDenied'],
    ['correct-vm'],
    denied('admission webhook "launcher.plumbline.dev" denied the request: plumbline: the CPU mask'),
  ),
  one(
    'the API server does not call the mutating webhook',
    ['no-launcher', 'broken', 'WebhookDenied'],
    ['bring-webhook-back'],
    denied(
      'admission webhook "final.plumbline.dev" denied the request: plumbline: the pod is without a decision of Plumbline',
    ),
  ),
  one(
    'over the quota, counting padding and side containers',
    ['no-launcher', 'broken', 'QuotaExceeded'],
    ['raise-quota'],
    denied('exceeded quota: cpus, requested: limits.cpu=6015m'),
  ),
  one(
    'over the LimitRange',
    ['no-launcher', 'broken', 'LimitRangeExceeded'],
    ['raise-limit-range'],
    denied('maximum cpu usage per Container is 4'),
  ),
  one(
    'denied by another webhook',
    ['no-launcher', 'broken', 'LauncherDenied'],
    ['correct-vm'],
    denied('admission webhook "policy.example.com" denied the request'),
  ),

  one('rejected: not annotated, no whole cores', ['rejected', 'broken', 'UnalignedRejected'], ['add-annotation'], {
    pod: { ...rejected('SMTAlignmentError', SMT), cpus: '3', metadata: { annotations: {} } },
  }),
  one('rejected: annotated, while the webhook was down', ['rejected', 'broken', 'UnpaddedRejected'], ['start-again'], {
    pod: { ...rejected('SMTAlignmentError', SMT), cpus: '3', metadata: { annotations: ANNOTATED } },
  }),
  one('rejected: another pod got its cores', ['rejected', 'waiting', 'CoresTaken'], ['wait'], {
    pod: rejected(
      'SMTAlignmentError',
      'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2',
    ),
  }),
  one('rejected: no NUMA node has room', ['rejected', 'broken', 'TopologyRejected'], ['check-extender'], {
    pod: rejected('TopologyAffinityError', 'Resources cannot be allocated with Topology locality'),
  }),
  one('rejected: another pod got a device', ['rejected', 'waiting', 'AdmissionRejected'], ['wait'], {
    pod: rejected('UnexpectedAdmissionError', 'Allocate failed'),
  }),
  one(
    'a loop of rejections, of which KubeVirt has left only Events',
    ['rejected', 'broken', 'UnalignedRejected'],
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
  ),
  one('evicted before it started', ['failed', 'waiting', 'EvictedBeforeStart'], ['look-at-successor'], {
    pod: { spec: ON_NODE, status: { phase: 'Failed', reason: 'Evicted' } },
    events: [{ name: LAUNCHER, reason: 'EvictedBeforeStart', message: 'the DPU has died' }],
  }),
  one('failed, with an Event EvictedBeforeStart that its user wrote', ['failed', 'broken', 'Failed'], ['read-events'], {
    pod: { spec: ON_NODE, status: { phase: 'Failed', reason: 'OutOfcpu' } },
    events: [{ name: LAUNCHER, reason: 'EvictedBeforeStart', message: 'x', component: 'a-user' }],
  }),
  one('ended', ['succeeded', 'stopped', 'Ended'], [], { pod: { spec: ON_NODE, status: { phase: 'Succeeded' } } }),
  one('being deleted', ['deleting', 'stopped', 'Deleting'], [], {
    pod: { ...RUNNING, metadata: { deletionTimestamp: SECONDS_AGO(3) } },
  }),

  one('behind a scheduling gate', ['gated', 'waiting', 'Gated'], ['ask-the-gate-keeper'], {
    pod: { spec: { schedulerName: 'plumbline-scheduler', schedulingGates: [{ name: 'example.com/wait' }] } },
  }),
  one(
    'Plumbline’s scheduler does not run',
    ['unscheduled', 'broken', 'SchedulerAway'],
    ['bring-scheduler-back'],
    { schedulerAge: null },
    { coarse: 'SchedulerAway' },
  ),
  one('Plumbline’s scheduler is silent', ['unscheduled', 'broken', 'SchedulerAway'], ['bring-scheduler-back'], {
    schedulerAge: 300,
  }),
  {
    ...one('the extender does not answer', ['unscheduled', 'broken', 'ExtenderAway'], ['bring-scheduler-back'], {}),
    extenderAway: true,
  },
  one('no scheduler has tried it yet', ['unscheduled', 'waiting', 'NotTried'], ['bring-scheduler-back'], {}),
  one('the node is full', ['unscheduled', 'waiting', 'NoNodeFits'], ['free-whole-cores'], {
    pod: { status: REFUSED },
    report: busy('1-15,17-31'),
  }),
  one(
    'larger than any empty node',
    ['unscheduled', 'broken', 'TooLarge'],
    ['ask-for-less'],
    { pod: { cpus: '64', status: REFUSED } },
    { coarse: 'NoNodeFits' },
  ),
  one('the only node is cordoned', ['unscheduled', 'waiting', 'NoNodeFits'], ['uncordon'], {
    pod: { status: REFUSED },
    node: { spec: { unschedulable: true } },
  }),
  one('the only node’s DPU is dead', ['unscheduled', 'waiting', 'NoNodeFits'], ['bring-dpu-back'], {
    pod: { status: REFUSED },
    node: DEAD_DPU,
  }),
  one(
    'a node would accept it',
    ['unscheduled', 'waiting', 'RetryPending'],
    ['wait', 'look-at-volumes'],
    { pod: { status: REFUSED } },
    { coarse: 'NoNodeFits' },
  ),
  one('the webhook did not see it', ['unscheduled', 'broken', 'WebhookMissed'], ['start-again'], {
    pod: { cpus: '3', metadata: { annotations: ANNOTATED }, status: REFUSED },
  }),
  one('it has a CPU mask, and the webhook did not see it', ['starting', 'degraded', 'NotDecided'], ['start-again'], {
    vm: maskedVm,
    pod: { ...masked(), metadata: { annotations: MASK }, status: { phase: 'Pending' } },
  }),
  one(
    'it has the default scheduler',
    ['unscheduled', 'degraded', 'ExtenderNotAsked'],
    ['start-again', 'wait', 'look-at-volumes'],
    { pod: { spec: { schedulerName: 'default-scheduler' }, status: REFUSED } },
  ),
  one('it has another scheduler', ['unscheduled', 'waiting', 'NoNodeFits'], ['uncordon', 'start-again'], {
    pod: { spec: { schedulerName: 'tenant-scheduler' }, status: REFUSED },
    node: { spec: { unschedulable: true } },
  }),

  one('starting', ['starting', 'waiting', 'Starting'], [], { pod: { spec: ON_NODE } }),
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
  one('its place is lost, and the extender does not evict it', ['starting', 'waiting', 'PlaceLost'], ['delete-pod'], {
    pod: { spec: ON_NODE },
    events: [{ name: LAUNCHER, reason: 'FailedToStart', message: placeLostText(NODE) }],
  }),
  one('its place was reported lost, but its kubelet has admitted it', ['starting', 'waiting', 'Starting'], [], {
    pod: { spec: ON_NODE },
    report: WHOLE,
    events: [{ name: LAUNCHER, reason: 'FailedToStart', message: placeLostText(NODE) }],
  }),
  one('it cannot start and cannot be evicted', ['starting', 'broken', 'CannotEvict'], ['remove-what-denies-eviction'], {
    pod: { spec: ON_NODE },
    events: [{ name: LAUNCHER, reason: 'CannotEvict', message: 'the API server denies it (429)' }],
  }),
  one('Events that its user wrote change nothing', ['starting', 'waiting', 'Starting'], [], {
    pod: { spec: ON_NODE },
    events: ['CannotEvict', 'FailedToStart', 'FailedCreatePodSandBox'].map((reason) => {
      return { name: LAUNCHER, reason, message: `${placeLostText(NODE)}: the DPU has died`, component: 'a-user' };
    }),
  }),
  one('the DPU died before it started', ['starting', 'broken', 'DPUNotReady'], ['bring-dpu-back'], {
    pod: { spec: ON_NODE },
    node: DEAD_DPU,
  }),

  one('runs as promised', ['running', 'ok', 'Aligned'], [], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: WHOLE,
  }),
  one('runs on a node whose DPU is dead', ['running', 'broken', 'DPUNotReady'], ['bring-dpu-back', 'place-again'], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: WHOLE,
    node: DEAD_DPU,
  }),
  one('shares cores with others', ['running', 'degraded', 'SplitCores'], ['place-again'], {
    pod: RUNNING,
    report: owns('1-4'),
  }),
  one('is far from its network', ['running', 'degraded', 'NetworkElsewhere'], ['place-again'], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: owns('8-9,24-25'),
  }),
  one('its network has left the node', ['running', 'degraded', 'NetworkGone'], ['place-again'], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: owns('1-2,17-18', { physnets: [] }),
  }),
  one('its network’s NUMA node is unknown', ['running', 'degraded', 'NetworkUnplaced'], ['check-network-name'], {
    pod: { ...RUNNING, resources: PHYSNET0 },
    report: owns('1-2,17-18', { physnets: [{ name: 'physnet0', cells: '' }] }),
  }),
  one('no agent reports its CPUs', ['running', 'degraded', 'NotReported'], ['check-agent'], { pod: RUNNING }),
  one('its node’s agent is silent', ['running', 'degraded', 'AgentSilent'], ['check-agent'], {
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
  one('its mask is no longer satisfied', ['running', 'degraded', 'MaskNotApplied'], ['correct-mask'], {
    ...RUNNING_MASKED,
    report: pinning('unpinned', { reason: 'Threads', message: 'found those of 0' }),
  }),
  one('no agent reports its mask', ['running', 'degraded', 'MaskNotReported'], ['check-agent'], {
    ...RUNNING_MASKED,
  }),
  one(
    'an instance that no VM made: no command of a VM is advised',
    ['running', 'degraded', 'SplitCores'],
    ['place-again'],
    { vm: null, pod: RUNNING, report: owns('1-4') },
  ),
  {
    ...one('asked about by its launcher', ['running', 'broken', 'DPUNotReady'], ['bring-dpu-back', 'place-again'], {
      pod: RUNNING,
      report: WHOLE,
      node: DEAD_DPU,
    }),
    subject: ['pod', LAUNCHER],
  },
];
