import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { byCause } from '../../cli/doctor/causes.ts';
import { checkAgents } from '../../cli/doctor/checks/agents.ts';
import { checkCertificates } from '../../cli/doctor/checks/certificates.ts';
import { checkDpus } from '../../cli/doctor/checks/dpu.ts';
import { checkExtender } from '../../cli/doctor/checks/extender.ts';
import { AREAS, type Area, type AreaReport, type DoctorFinding } from '../../cli/doctor/checks/finding.ts';
import { checkInstalled } from '../../cli/doctor/checks/installed.ts';
import { checkKubelets } from '../../cli/doctor/checks/kubelet.ts';
import { checkNetworks } from '../../cli/doctor/checks/networks.ts';
import { checkPods } from '../../cli/doctor/checks/pods.ts';
import { checkWebhook } from '../../cli/doctor/checks/webhook.ts';
import type { DoctorFacts } from '../../cli/doctor/facts/facts.ts';
import { areaLines, endLines } from '../../cli/doctor/run.ts';
import * as objects from '../../cli/support/objects.ts';
import { lineText } from '../../cli/support/terminal.ts';
import { explainedNode, explainedPod, explainedVm, occurrence } from '../../diagnosis/objects.ts';
import { commandText } from '../../diagnosis/remedies.ts';
import { type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';
import { EVEN_PARITY_ANNOTATION } from '../../model/launcher/cpus.ts';
import { PREDICTION_DIFFERS } from '../../model/names.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { launcher as launcherObject } from '../diagnosis/fixture.ts';
import { vmiOwner } from '../support/vmi-owner.ts';
import { topologyObject, useCluster } from './cluster-fixture.ts';

const NOW = Date.now();
const SILENT = 'the extender in pod plumbline-scheduler-1 did not answer (connection refused)';
const authority = createCertificateAuthority('plumbline-test');
const other = createCertificateAuthority('somebody-else');
const base64 = (text: string) => Buffer.from(text).toString('base64');

const secretOf = (
  service: string,
  cert = authority.issue([`${service}.plumbline-system.svc`]).cert,
  ca?: { readonly cert: string },
) =>
  objects.tlsSecret.parse({
    metadata: { name: `${service}-tls` },
    data: { 'tls.crt': base64(cert), 'tls.key': 'secret', ...(ca && { 'ca.crt': base64(ca.cert) }) },
  });

const LAUNCHER = {
  name: 'launcher.plumbline.dev',
  clientConfig: { caBundle: base64(authority.cert) },
  failurePolicy: 'Fail',
  reinvocationPolicy: 'IfNeeded',
  matchConditions: [{ name: 'required', expression: 'authorizer.…' }],
};
const ROUTE = { name: 'scheduler.plumbline.dev', clientConfig: { caBundle: base64(authority.cert) } };
const FINAL = { name: 'final.plumbline.dev', clientConfig: { caBundle: base64(authority.cert) } };
const POD_RULES = [{ operations: ['CREATE'], resources: ['pods'] }];

const configuration = (name: string, ...webhooks: object[]) =>
  objects.webhookConfiguration.parse({ metadata: { name }, webhooks });
const requiredBy = (...accounts: string[]) =>
  objects.roleBinding.parse({
    metadata: { name: 'plumbline-webhook-required' },
    subjects: accounts.map((name) => ({ kind: 'ServiceAccount', name, namespace: 'plumbline-system' })),
  });
const slice = (service: string, ready = true) =>
  objects.endpointSlice.parse({
    metadata: { labels: { 'kubernetes.io/service-name': service } },
    endpoints: [{ conditions: { ready } }],
  });
const node = (name: string, more: object = {}) =>
  explainedNode.parse({ metadata: { name, labels: { 'kubevirt.io/schedulable': 'true' } }, ...more });
const topology = (name: string, report: Partial<NodeTopologyStatus> = {}) =>
  nodeTopology.parse(topologyObject(name, report));
const launcher = (name: string, { metadata = {}, ...more }: Record<string, unknown> = {}) => {
  const owner = { namespace: 'default', uid: name, ownerReferences: [vmiOwner(name, 'u')] };
  const own = { name, ...owner, annotations: {}, ...(metadata as object) };
  return explainedPod.parse({
    ...launcherObject({ cpus: '10', metadata: own, spec: { nodeName: 'worker-1' } }),
    ...more,
  });
};
const nad = (config: string) =>
  networkAttachmentDefinition.parse({ metadata: { name: 'data', namespace: 'default' }, spec: { config } });
const localnet = (physnet: string) =>
  JSON.stringify({
    type: 'ovn-k8s-cni-overlay',
    topology: 'localnet',
    name: 'data',
    physicalNetworkName: physnet,
    netAttachDefName: 'default/data',
  });

const scheduler = (image = 'registry.k8s.io/kube-scheduler:v1.36.1@sha256:0a', readyReplicas?: number) =>
  objects.deployment.parse({
    metadata: { name: 'plumbline-scheduler' },
    spec: { template: { spec: { containers: [{ name: 'kube-scheduler', image }] } } },
    status: { readyReplicas: readyReplicas ?? 2 },
  });
const kubeScheduler = (...command: string[]) =>
  objects.schedulerPod.parse({
    metadata: { name: 's' },
    spec: { nodeName: 'cp-1', containers: [{ command: ['kube-scheduler', ...command] }] },
  });
/** A static pod next to a kube-scheduler. */
const extenderPod = (nodeName: string, ready = true) =>
  objects.schedulerPod.parse({
    metadata: { name: `plumbline-scheduler-plugin-${nodeName}` },
    spec: { nodeName, containers: [{}] },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });

const kubevirtOf = (featureGates: string[], annotated: boolean) =>
  objects.kubevirt.parse({
    metadata: { name: 'kubevirt', annotations: annotated ? { [EVEN_PARITY_ANNOTATION]: '' } : {} },
    spec: { configuration: { developerConfiguration: { featureGates } } },
  });

/** Pods of a component with the given container name, from images with these tags. */
const podsOf = (container: string, image: string, ...tags: string[]) =>
  tags.map((tag) =>
    objects.systemPod.parse({
      metadata: {},
      spec: { containers: [{ name: container, image: `localhost:5000/${image}${tag}` }] },
    }),
  );
/** Webhook, extender next to kube-scheduler, agents. */
const partsOf = (webhook: string, extender: string, ...agents: string[]) => {
  const [pod] = podsOf('kube-scheduler', 'kube-scheduler', ':v1.36.1');
  const [sidecar] = podsOf('extender', 'plumbline-scheduler-plugin', extender);
  const schedulers = [{ ...pod!, spec: { ...pod!.spec, initContainers: sidecar!.spec.containers } }];
  const webhooks = podsOf('webhook', 'plumbline-webhook', webhook);
  return { value: [...webhooks, ...schedulers, ...podsOf('node-agent', 'plumbline-node-agent', ...agents)] };
};

/** A cluster without faults: the base. Its own kube-scheduler does not use Plumbline. */
const GOOD: DoctorFacts = {
  now: NOW,
  nodes: [node('worker-1')],
  topologies: { value: [topology('worker-1')] },
  agents: { value: { ages: new Map([['worker-1', 5]]), silent: new Set() } },
  mutating: { value: [configuration('plumbline-webhook', LAUNCHER, ROUTE)] },
  validating: { value: [configuration('plumbline-webhook', FINAL)] },
  webhookRequired: { value: requiredBy('plumbline-webhook') },
  namespace: { value: objects.installedNamespace.parse({ metadata: { name: 'plumbline-system' } }) },
  endpoints: { value: [slice('plumbline-webhook')] },
  webhookSecret: { value: secretOf('plumbline-webhook') },
  deployments: { value: [scheduler()] },
  review: { result: 'reviewed' },
  presented: { value: [] },
  systemPods: partsOf(':0.3.1', ':0.3.1', ':0.3.1'),
  command: '0.3.1',
  migrations: { value: [] },
  schedulerElection: { value: { leader: 'plumbline-scheduler-1', age: 3 } },
  apiVersion: { value: 'v1.36.2' },
  extender: { value: { active: true, decisions: [{ pod: 'default/x' }] } },
  schedulers: { value: [kubeScheduler()] },
  extenderPods: { value: [] },
  kubevirts: { value: [] },
  nads: { value: [nad(localnet('physnet0'))] },
  launchers: { value: [launcher('fine', { metadata: { annotations: {} } })] },
  machines: { value: [] },
  instances: { value: [] },
  cannotEvict: { value: [] },
  differences: { value: [] },
  rejections: { value: [] },
};

/** The second way: an extender next to the cluster's own kube-scheduler. */
const LOOPBACK: DoctorFacts = {
  ...GOOD,
  mutating: { value: [configuration('plumbline-webhook', LAUNCHER)] },
  deployments: { value: [] },
  schedulerElection: { missing: 'absent' },
  schedulers: { value: [kubeScheduler('--config=/etc/x')] },
  extenderPods: { value: [extenderPod('cp-1')] },
};

const ALL = [
  checkInstalled,
  checkWebhook,
  checkCertificates,
  checkExtender,
  checkAgents,
  checkKubelets,
  checkNetworks,
  checkPods,
];

/** What all areas find in the healthy cluster with these changes, by cause. */
const causesIn = (changes: Partial<DoctorFacts>) =>
  byCause(ALL.flatMap((check) => check({ ...GOOD, ...changes }).findings));

/** The finding is matched with its severity: `error: there is no …`. */
type Finds = readonly [title: string, facts: Partial<DoctorFacts>, finding: RegExp, impact?: RegExp];

const DISTRIBUTED = {
  policy: 'static',
  options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'true' },
};
const condition = (type: string, reason: string, message: string) => ({
  conditions: [{ type, status: 'False' as const, reason, message, lastTransitionTime: '' }],
});
const report = (more: Partial<NodeTopologyStatus>) => ({ topologies: { value: [topology('worker-1', more)] } });
const mutating = (webhook: object, ...others: ReturnType<typeof configuration>[]) => ({
  mutating: { value: [configuration('plumbline-webhook', { ...LAUNCHER, ...webhook }, ROUTE), ...others] },
});
const injector = configuration('sidecar-injector', { name: 'x', clientConfig: {}, rules: POD_RULES });
/** About a pod of the namespace vms. */
const eventOf = (component: string, reason: string, name: string, message?: string) =>
  occurrence.parse({
    involvedObject: { kind: 'Pod', namespace: 'vms', name },
    source: { component },
    reason,
    message,
    metadata: {},
  });
const rejection = (name: string) => eventOf('kubelet', 'SMTAlignmentError', name);
const pending = (name: string, schedulerName?: string) => {
  const made = launcher(name);
  return { ...made, spec: { ...made.spec, nodeName: undefined, schedulerName } };
};
const DIFFERENCE = 'CPUs 1-2 of n1 were predicted, but the kubelet assigned CPUs 3-4';
const difference = (component: string, name: string) => eventOf(component, PREDICTION_DIFFERS, name, DIFFERENCE);

const ABSENT = { missing: 'absent' } as const;
const releasedAs = (text: string) => ({
  namespace: {
    value: objects.installedNamespace.parse({ metadata: { annotations: { [objects.RELEASE_ANNOTATION]: text } } }),
  },
});
const configurationOfRelease = (name: string) => {
  const { webhooks, metadata } = configuration('plumbline-webhook', FINAL);
  const annotations = { 'meta.helm.sh/release-name': name };
  return objects.webhookConfiguration.parse({ webhooks, metadata: { ...metadata, annotations } });
};
const NO_ANSWER = { missing: 'silent', why: SILENT, failure: 'connection refused' } as const;
const gates = (featureGates: string[], annotated: boolean) => ({
  kubevirts: { value: [kubevirtOf(featureGates, annotated)] },
});
const certificate = (cert?: string, ca?: { readonly cert: string }) => ({
  webhookSecret: { value: secretOf('plumbline-webhook', cert, ca) },
});
const OTHER_CERT = other.issue(['plumbline-webhook.plumbline-system.svc']).cert;
const CA_OF_60_DAYS = createCertificateAuthority('plumbline-ca', { days: 60 });
/** A replica with a certificate of its own, issued these days from now for a day. */
const presentedFor = (days: number): Partial<DoctorFacts> => {
  const { cert } = createCertificateAuthority('x', { now: NOW + days * 86_400_000, days: 1 }).issue(['x']);
  return { presented: { value: [{ pod: 'webhook-1', certificate: new X509Certificate(cert) }] } };
};
const MASKS_ONLY = { matchConditions: [{ expression: "'plumbline.dev/cpu-mask' in object.metadata.annotations" }] };
const WITHOUT_FINAL = configuration('plumbline-webhook', {
  name: 'vms.plumbline.dev',
  clientConfig: FINAL.clientConfig,
});
const WITHOUT_ROUTE = { mutating: { value: [configuration('plumbline-webhook', LAUNCHER)] } };
const agents = (seconds: number) => ({
  agents: { value: { ages: new Map([['worker-1', seconds]]), silent: new Set(['worker-1']) } },
});
const nads = (config: string) => ({ nads: { value: [nad(config)] } });
const UNEVEN = { cells: [{ id: 0, cpus: '0-2' }], cores: ['0-1', '2', '3'], reserved: '0-1' };
const MAP_FAULT = 'network map: NUMA node 7 of physnet a is not on this host; the last good map stays in use';

/** The fix of a missing webhook configuration, by what the installation records of itself. */
const AGAIN: readonly (readonly [title: string, facts: Partial<DoctorFacts>, command: string])[] = [
  ['kustomization', {}, 'kubectl apply --server-side -k .'],
  [
    'release manifest',
    releasedAs('0.2.1 1.34 ghcr.io/plumbline-dev/plumbline'),
    'kubectl apply --server-side -f https://github.com/plumbline-dev/plumbline/releases/download/v0.2.1/plumbline-kubernetes-1.34.yaml',
  ],
  [
    'manifest with its own registry',
    releasedAs('0.2.1 1.34 reg.example.org/x'),
    'npm run --silent release:manifest -- 1.34 reg.example.org/x | kubectl apply --server-side -f -',
  ],
  [
    'chart',
    { validating: { value: [configurationOfRelease('vms')] } },
    'helm -n plumbline-system get manifest vms | kubectl apply --server-side -f -',
  ],
  ['an annotation that another wrote', releasedAs('x; rm -rf /'), 'kubectl apply --server-side -k .'],
];

const value = <T>(...list: T[]) => ({ value: list });
const failed = (why: string) => ({ review: { result: 'failed', webhook: 'launcher.plumbline.dev', why } }) as const;
const elected = (age: number) => ({ schedulerElection: { value: { leader: 'plumbline-scheduler-1', age } } });
const scheduledBy = (image: string) => ({ deployments: value(scheduler(`registry.k8s.io/kube-scheduler:${image}`)) });
const activeIs = (active: boolean) => ({ extender: { value: { active, decisions: [] } } });
const AWAY = { endpoints: value(slice('plumbline-webhook', false)) };
const NOT_READY = { deployments: value(scheduler(undefined, 0)) };
const UNREACHED = { webhookRequired: { value: requiredBy() } };
const NOT_PREDICTED = {
  differences: value(difference('plumbline-scheduler-plugin', 'a'), difference('x', 'b')),
};
const UNCHECKED = { ...mutating({}, injector), validating: value(WITHOUT_FINAL) };
const SMALL = { nodes: [node('worker-1', { status: { capacity: { cpu: '2' } } })] };
const OFFLINE = report({ ...UNEVEN, cores: ['0-1', '2'], offline: '3' });
const REJECTED = { launchers: value(launcher('no', { status: { phase: 'Failed', reason: 'SMTAlignmentError' } })) };
const REJECTED_AND_GONE = {
  launchers: { value: [] },
  machines: value(explainedVm.parse({ metadata: { namespace: 'vms', name: 'vm' }, spec: {} })),
  rejections: value(...['virt-launcher-vm-abcde', 'batch-job'].map(rejection)),
};
const FOREIGN_NAD = nads(localnet('physnet0').replace('default/data', 'default/x'));
const ON_NODE_OF_OTHER = /^error: no extender is ready next to kube-scheduler on cp-1/;
const OLD_REPORT = /^its report is old: new VMs go there last and by CPU count only, or not at all/;
const OLD_MAP = /the agent does not apply the current network map on that node/;
const CORES_DIFFER = condition(
  'KubeletTopologyAgrees',
  'CoresDiffer',
  'the kubelet takes CPUs 0,4,6 for one core each',
);

/** What each area finds in the healthy cluster with a change. */
const CASES: Readonly<Record<string, readonly Finds[]>> = {
  installed: [
    ['a missing definition', { topologies: ABSENT }, /^error: .*has no NodeTopology/],
    ['missing reports', { topologies: { value: [] } }, /^error: no node reports/],
    ['a missing webhook', { mutating: { value: [] } }, /^error: .*no MutatingWebhookConfiguration plumbline-webhook/],
  ],
  webhook: [
    ['a missing CA bundle', mutating({ clientConfig: {} }), /^error: .*launcher.plumbline.dev has no CA bundle/],
    ['failurePolicy Ignore', mutating({ failurePolicy: 'Ignore' }), /^warning: .*failurePolicy Ignore/],
    ['webhooks switched off by hand', { webhookRequired: ABSENT }, /^warning: .*switched off: there is no RoleBinding/],
    ['the webhook was never reached', UNREACHED, /^error: .*the API server has not reached plumbline-webhook yet/],
    ['AlignCPUs without its gate', gates([], true), /^warning: .*annotation .* without the feature gate AlignCPUs/],
    ['AlignCPUs without its annotation', gates(['AlignCPUs'], false), /^warning: .*AlignCPUs without the annotation/],
    [
      'AlignCPUs with a webhook configuration that does not support it',
      { ...mutating(MASKS_ONLY), ...gates(['AlignCPUs'], true) },
      /^error: launcher.plumbline.dev ignores launchers with alpha.kubevirt.io\/EmulatorThreadCompleteToEvenParity/,
    ],
    [
      'a later injector, after which the webhook is not called again',
      mutating({ reinvocationPolicy: 'Never' }, injector),
      /^warning: sidecar-injector change pods after plumbline-webhook, which is not called again/,
    ],
    ['a later injector, without a check of the result', UNCHECKED, /^warning: .*final.plumbline.dev is missing/],
    ['no replica ready', AWAY, /^error: no replica of/],
    [
      'replicas that are ready and do not answer',
      failed('context deadline exceeded'),
      /^error: .* calls webhook launcher.plumbline.dev without success: context deadline exceeded/,
      /cannot create launchers/,
    ],
    [
      'a certificate that is not accepted',
      failed('tls: x509: has expired'),
      /^error: .*success: tls: x509: has expired/,
    ],
  ],
  certificates: [
    ['a missing Secret', { webhookSecret: ABSENT }, /^error: .*no secret plumbline-webhook-tls/],
    ['another name', { webhookSecret: { value: secretOf('x') } }, /^error: .*not for plumbline-webhook.plumbline/],
    ['another CA', certificate(OTHER_CERT), /^error: .*CA bundle of launcher.plumbline.dev does not match/],
    ['a CA that was not renewed', certificate(undefined, CA_OF_60_DAYS), /^warning: .*-tls expires in \d+ days/],
    ['an old one that a replica presents', presentedFor(-2), /^error: pod webhook-1 presents a .* that has expired/],
    ['one of the future', presentedFor(2), /^error: pod webhook-1 presents a certificate that is not valid yet/],
    [
      'a renewed one that a replica has not loaded',
      { now: NOW + 3_600_000, ...presentedFor(0) },
      /^warning: pod webhook-1 presents a certificate that is not the one in the secret/,
    ],
    ['expired', { now: NOW + 20 * 365 * 86_400_000 }, /^error: .*has expired/],
  ],
  extender: [
    [
      'kubelets that did not do as predicted; an Event that any user can write does not count',
      NOT_PREDICTED,
      /^warning: kubelets did not do as predicted for 1 pod: vms\/a$/,
    ],
    ['no scheduler is ready', NOT_READY, /^error: no replica of .* ready/],
    ['its Lease is old', elected(600), /^error: the Lease plumbline-scheduler was last renewed 600 s ago by pod .*-1$/],
    [
      'no leader ever',
      { schedulerElection: ABSENT, extender: ABSENT },
      /^error: no replica of .*-scheduler is the leader/,
    ],
    ['no answer', { extender: NO_ANSWER }, /^error: .* pod plumbline-scheduler-1 does not answer: connection refused$/],
    [
      'the leader’s is not active',
      activeIs(false),
      /^warning: the extender in pod plumbline-scheduler-1 is not active/,
    ],
    ['a newer kube-scheduler', scheduledBy('v1.37.0'), /^error: .*v1.37.0 is newer than the API server v1.36.2/],
    ['one two minor versions older', scheduledBy('v1.34.9'), /^warning: .*v1.34.9 is 2 minor versions older than/],
    ['the webhook routes no launchers', WITHOUT_ROUTE, /^error: .*has no webhook scheduler.plumbline.dev/],
    [
      'a pending launcher that was not routed',
      { launchers: value(pending('missed', 'default-scheduler')) },
      /^warning: 1 pending launcher for default-scheduler: default\/missed/,
    ],
    [
      'neither way is installed',
      { deployments: { value: [] }, schedulerElection: ABSENT },
      /^error: the Deployment plumbline-scheduler is not installed, and no extender runs next to kube-scheduler/,
    ],
  ],
  agents: [
    ['no report', { nodes: [node('worker-1'), node('worker-2')] }, /^error: 1 node of KubeVirt without .*: worker-2/],
    ['a silent agent', agents(500), /^error: .*silent: worker-1/, OLD_REPORT],
    ['more CPUs than the Node', SMALL, /^error: .* worker-1 is quarantined: .* \d+ CPUs, and the Node's capacity is 2/],
    [
      'a contradictory report',
      report({ cores: ['0-1023'] }),
      /^error: the report of node worker-1 is quarantined: the report contradicts itself: core .* at most 64/,
    ],
    [
      'a report of a deleted node',
      { topologies: value(topology('worker-1'), topology('gone')) },
      /^warning: .*nodes that no longer exist: gone/,
    ],
    [
      'a condition: a typo in the network map',
      report(condition('NetworkMapValid', 'InvalidMap', MAP_FAULT)),
      /^warning: worker-1: NetworkMapValid is False \(InvalidMap\): network map: NUMA node 7 of physnet a is not on this/,
      OLD_MAP,
    ],
  ],
  kubelet: [
    ['an unknown version', report({ kubeletVersion: 'v1.99.0' }), /v1.99.0 is not predicted.* on 1 node: worker-1/],
    ['CPU manager policy none', report({ cpuManager: { policy: 'none' } }), /CPU manager policy none/],
    ['full-pcpus-only off', report({ cpuManager: { policy: 'static' } }), /full-pcpus-only is off/],
    ['topology manager policy none', report({ topologyManager: { policy: 'none' } }), /topology manager policy none/],
    ['a split core', report({ reserved: '0' }), /^warning: .*split a core \(CPUs 0,16 are one core\) on 1 node/],
    [
      'options and a split core with which a kubelet can hang',
      report({ reserved: '0', cpuManager: DISTRIBUTED }),
      /^error: full-pcpus-only and distribute-cpus-across-numa with reserved CPUs that split a core on 1 node: worker-1/,
    ],
    [
      'cores that only it counts',
      report(CORES_DIFFER),
      /^warning: the kubelet takes CPUs 0,4,6 .* on 1 node: worker-1/,
    ],
    ['an offline thread', OFFLINE, /^error: CPU 3 is offline, and .*-1/],
    ['uneven cores', report({ ...UNEVEN, cells: [{ id: 0, cpus: '0-3' }] }), /^error: .*different numbers of/],
    ['polled CPUs that are not reserved', report({ pmdCPUs: '1,17' }), /^error: poll mode CPUs are not reserved/],
    ['a contradictory report', report({ reserved: '99' }), /^error: .*contradicts itself/],
  ],
  networks: [
    ['an unknown physnet', nads(localnet('physnet9')), /no node has physnet physnet9, which default\/data leads to/],
    ['a definition that is not JSON', nads('{'), /^error: .*default\/data is not valid JSON/],
    [
      'a definition that OVN-Kubernetes refuses',
      FOREIGN_NAD,
      /^error: OVN-Kubernetes refuses default\/data: netAttachDefName is "default\/x" and must be "default\/data"$/,
    ],
    ['a definition of no type', nads('{"name":"data"}'), /^error: multus refuses default\/data: it has neither a/],
  ],
  pods: [
    ['a launcher that a kubelet rejected', REJECTED, /rejected 1 launcher \(SMTAlignmentError\): default\/no/],
    ['one that KubeVirt has deleted', REJECTED_AND_GONE, /rejected 1 .*Error\): vms\/virt-launcher-vm-abcde$/],
    ['a cordoned node', { nodes: [node('worker-1', { spec: { unschedulable: true } })] }, /1 node cordoned: worker-1/],
  ],
};

/** The same of the area extender in the second way. */
const LOOPBACK_CASES: readonly Finds[] = [
  ['a kube-scheduler without an extender on its host', { extenderPods: value(extenderPod('cp-2')) }, ON_NODE_OF_OTHER],
  ['an extender that is not ready', { extenderPods: value(extenderPod('cp-1', false)) }, ON_NODE_OF_OTHER],
  ['kube-scheduler without --config', { schedulers: value(kubeScheduler()) }, /^error: s runs without --config/],
  ['the extender was never called', activeIs(true), /^warning: .*has not called the extender/],
  [
    'the webhook routes to a missing scheduler',
    { mutating: GOOD.mutating },
    /^error: .*scheduler.plumbline.dev assigns launchers to plumbline-scheduler, which is not installed/,
  ],
  [
    'a launcher waits for a missing scheduler',
    { launchers: value(pending('stranded', 'plumbline-scheduler')) },
    /^error: 1 pending launcher for plumbline-scheduler, which is not installed: default\/stranded/,
  ],
  [
    'a Lease of the first way remains',
    { schedulerElection: GOOD.schedulerElection, extender: NO_ANSWER },
    /^error: the leader’s extender does not answer: connection refused/,
  ],
];

/** kubectl's read-only verbs and repairing verbs; areas of this command. */
const VERBS = ['get', 'describe', 'logs', 'rollout', 'apply', 'uncordon', 'delete'];

function isCommand(program: string, args: readonly string[]): boolean {
  const [first = '', second = '', third = '', ...rest] = args;
  if (program === 'kubectl') return VERBS.includes(first === '-n' ? third : first);
  if (program === 'virtctl') return ['restart', 'migrate', 'start', 'unpause'].includes(first);
  if (first === 'doctor')
    return [second, third, ...rest].every((area) => area === '' || AREAS.some((one) => one === area));
  return ['explain', 'top', 'verify'].includes(first);
}

function doctorLines(reports: readonly AreaReport[], findings: readonly DoctorFinding[], width: number, wide = false) {
  return [...areaLines(reports, findings, width, wide), ...endLines(reports, findings, wide)];
}

describe('plumbline doctor', () => {
  for (const [way, facts] of [
    ['sidecar', GOOD],
    ['loopback', LOOPBACK],
  ] as const) {
    it(`finds nothing in a healthy cluster: ${way}`, () => {
      const reports = ALL.map((check) => check(facts));
      assert.equal(
        reports.flatMap(({ findings, unseen }) => [...findings.map(({ what }) => what), ...unseen]).join(),
        '',
      );
      assert.equal(doctorLines(reports, [], 80).at(-1), 'no problems found');
    });
  }

  const areas = Object.entries(CASES).map(([name, rows]) => [name, GOOD, rows] as const);
  for (const [area, base, cases] of [...areas, ['extender', LOOPBACK, LOOPBACK_CASES] as const]) {
    for (const [title, more, expected, impact] of cases) {
      it(`finds, ${area}${base === LOOPBACK ? ' in loopback' : ''}: ${title}`, () => {
        const findings = ALL.flatMap((check) => check({ ...base, ...more }).findings);
        const finding = findings.find((each) => each.area === area && expected.test(`${each.severity}: ${each.what}`));
        assert.ok(finding, JSON.stringify(findings));
        assert.match(finding.impact, impact ?? /./);
        assert.ok(finding.fix.text.length > 0);
        // A command is in the list, where tests and scripts find it.
        assert.doesNotMatch(finding.fix.text, /\bkubectl \w|\bplumbline (?:doctor|explain) \w/);
        for (const { program, args } of finding.fix.commands) assert.ok(isCommand(program, args), args.join(' '));
        if (finding.severity !== 'error') assert.ok(findings.every((each) => each.severity !== 'error'));
      });
    }
  }

  describe('versions of the components', () => {
    const installed = (systemPods: DoctorFacts['systemPods'], command = '0.3.1') => {
      const { findings, seen, unseen } = checkInstalled({ ...GOOD, systemPods, command });
      return { findings: findings.map(({ severity, what, fix }) => `${severity}: ${what}; ${fix.text}`), seen, unseen };
    };

    it('no finding for equal versions, or for a command with another patch version; all are named', () => {
      for (const command of ['0.3.1', '0.3.0', '0.3.2-rc.1']) {
        const { findings, seen } = installed(partsOf(':v0.3.1', ':0.3.1@sha256:0a', ':0.3.1', ':0.3.1'), command);
        assert.deepEqual(findings, []);
        assert.equal(seen.at(-1), `versions: webhook 0.3.1, extender 0.3.1, agents 0.3.1, command ${command}`);
      }
    });

    const said = 'webhook 0.3.1, extender 0.4.0, agents 0.3.1 (2 pods) and 0.4.0 (1 pod), command 0.4.0';
    const upgrade = `^warning: parts of different versions run: ${said.replace(/[.()]/g, '\\$&')}; finish the upgrade`;
    /** The command has version 0.4.0. */
    const cases: [title: string, pods: DoctorFacts['systemPods'], expected: RegExp][] = [
      ['an upgrade', partsOf(':0.3.1', ':0.4.0', ':0.3.1', ':0.4.0', ':0.3.1'), new RegExp(upgrade)],
      ['a newer command', partsOf(':0.3.1', ':0.3.1', ':0.3.1'), /^warning: .*command 0.4.0; install this command/],
      ['two minor versions', partsOf(':0.5.0', ':0.4.0', ':0.3.0'), /^error: .*one minor version at a time/],
    ];
    for (const [title, pods, expected] of cases) {
      it(`${title}: one finding`, () => {
        const { findings } = installed(pods, '0.4.0');
        assert.equal(findings.length, 1);
        assert.match(findings[0] ?? '', expected);
      });
    }

    it('no claim about images without a version, other pods, and unreadable pods', () => {
      const digest = installed(partsOf(':0.3.1', '@sha256:0a', ':latest'));
      assert.deepEqual(digest.findings, []);
      assert.match(digest.seen.at(-1) ?? '', /^versions: webhook 0.3.1, command 0.3.1$/);
      assert.equal(digest.unseen.length, 2);
      const others = podsOf('webhook', 'other-webhook', ':9.9.9');
      assert.deepEqual(installed({ value: others }), { ...installed({ value: [] }) });
      const { unseen } = installed({ missing: 'forbidden' });
      assert.match(unseen.join(), /pods of plumbline-system \(you may not read them\)/);
    });
  });

  for (const [way, facts, command] of AGAIN) {
    it(`restores what is missing as it was installed: ${way}`, () => {
      const findings = causesIn({ mutating: { value: [] }, ...facts }).filter(({ area }) => area === 'installed');
      assert.equal(findings.flatMap(({ fix }) => fix.commands.map(commandText)).join(), command);
    });
  }

  it('ignores rejected launchers of a deleted VM', () => {
    const rejections = { value: [rejection('virt-launcher-vm-abcde')] };
    assert.deepEqual(checkPods({ ...GOOD, rejections }).findings, []);
    const forbidden = checkPods({ ...GOOD, rejections, machines: { missing: 'forbidden' } });
    assert.equal(forbidden.findings.length, 1);
  });

  it('reports one missing certificate as one finding', () => {
    const facts: DoctorFacts = {
      ...GOOD,
      ...mutating({ clientConfig: {} }),
      validating: { value: [configuration('plumbline-webhook', { ...FINAL, clientConfig: {} })] },
      webhookSecret: { missing: 'absent' },
      ...AWAY,
    };
    const all = ALL.flatMap((check) => check(facts).findings);
    assert.ok(all.length >= 4, `${all.length} signs`);
    const merged = byCause(all);
    assert.equal(merged.map(({ what }) => what).join(), 'there is no secret plumbline-webhook-tls in plumbline-system');
    assert.match(merged[0]?.consequences?.join() ?? '', /launcher.plumbline.dev has no CA bundle.*no replica of/);
  });

  it('shows the findings of every area, those that stop VMs first', () => {
    const finding = (area: Area): DoctorFinding => ({
      area,
      severity: 'warning',
      what: area,
      impact: '',
      fix: { text: '', commands: [] },
    });
    const areas = byCause((['interference', 'networks', 'webhook'] as const).map(finding)).map(({ area }) => area);
    assert.deepEqual(areas, ['webhook', 'networks', 'interference']);
  });

  it('prints the command that lets VMs start while the webhook is down, for every cause', () => {
    const away: DoctorFacts = { ...GOOD, ...AWAY };
    for (const facts of [away, { ...away, webhookSecret: { missing: 'absent' } } as DoctorFacts]) {
      const reports = ALL.map((check) => check(facts));
      const lines = doctorLines(reports, byCause(reports.flatMap(({ findings }) => findings)), 80);
      const text = lines.join(' ').replace(/\s+/g, ' ');
      assert.match(text, /meanwhile: .+: kubectl -n plumbline-system delete rolebinding plumbline-webhook-required/);
    }
  });

  it('waits for nothing of a webhook that is not called', () => {
    assert.equal(causesIn({ ...AWAY, ...UNREACHED })[0]?.meanwhile, undefined);
  });

  it('names every object of a finding and the checked objects of its area with wide', () => {
    const names = Array.from({ length: 12 }, (_, i) => `worker-${i + 1}`);
    const facts: DoctorFacts = { ...GOOD, nodes: names.map((name) => node(name, { spec: { unschedulable: true } })) };
    const report = checkPods(facts);
    const [short, wide] = [false, true].map((all) =>
      doctorLines([report], report.findings, 80, all).map((line) => lineText(line)),
    );
    assert.ok(!short?.join('\n').includes('node/worker-12'));
    assert.ok(wide?.includes(`    objects: ${names.map((name) => `node/${name}`).join(' ')}`));
    assert.match(wide?.join('\n') ?? '', /^· pods: /m);
  });

  it('explains its signs and counts skipped checks only if there are any', () => {
    const endOf = (facts: DoctorFacts, wide = false) => {
      const reports = [checkPods(facts), checkInstalled(facts)];
      const all = reports.flatMap(({ findings }) => findings);
      return doctorLines(reports, all, 80, wide)
        .slice(-3)
        .map((line) => lineText(line));
    };
    const cordoned = { ...GOOD, nodes: [node('worker-1', { spec: { unschedulable: true } })] };
    const partly: DoctorFacts = { ...GOOD, systemPods: { missing: 'forbidden' } };
    assert.deepEqual(endOf(GOOD).slice(1), ['', 'no problems found']);
    assert.deepEqual(endOf(cordoned).slice(1), ['', '0 errors, 1 warning']);
    const other = '· these checks of the area found nothing';
    assert.deepEqual(endOf(cordoned, true), ['', other, '0 errors, 1 warning']);
    assert.deepEqual(endOf(partly), ['', `${other}   ? skipped`, 'no problems found; 1 check skipped']);
  });

  it('leads to the agents that are silent, and to no others', () => {
    const agentPod = (name: string, nodeName: string) =>
      objects.systemPod.parse({
        metadata: { name, labels: { 'app.kubernetes.io/name': 'plumbline-node-agent' } },
        spec: { nodeName, containers: [] },
      });
    const commandsFor = (...silent: string[]) =>
      checkAgents({
        ...GOOD,
        topologies: { value: ['worker-1', 'worker-2', 'worker-3'].map((name) => topology(name)) },
        agents: { value: { ages: new Map(silent.map((name) => [name, 500])), silent: new Set(silent) } },
        systemPods: { value: [agentPod('agent-a', 'worker-1'), agentPod('agent-b', 'worker-2')] },
      })
        .findings.find(({ what }) => what.includes('silent'))
        ?.fix.commands.map(({ args }) => args.slice(2).join(' '));
    const label = 'get pods -o wide -l app.kubernetes.io/name=plumbline-node-agent';
    const only = `${label} --field-selector spec.nodeName=worker-1`;
    assert.deepEqual(commandsFor('worker-1'), [only, 'logs agent-a --tail=20']);
    assert.deepEqual(commandsFor('worker-2', 'worker-3'), [label, 'logs agent-b --tail=20']);
  });

  it('adds VMs on nodes with a silent agent to its finding, but not others', () => {
    const running = (name: string, nodeName: string) => {
      const made = launcher(name, { status: { phase: 'Running' } });
      return { ...made, spec: { ...made.spec, nodeName } };
    };
    const facts = {
      nodes: [node('worker-1'), node('worker-2')],
      topologies: { value: [topology('worker-1'), topology('worker-2')] },
      ...agents(500),
    };
    const areasWith = (pod: ReturnType<typeof running>) =>
      causesIn({ ...facts, launchers: { value: [pod] } }).map(({ area }) => area);
    assert.deepEqual(areasWith(running('a', 'worker-1')), ['agents']);
    assert.deepEqual(areasWith(running('b', 'worker-2')), ['agents', 'pods']);
  });

  it('sorts findings by impact', () => {
    const found = causesIn({
      nodes: [node('worker-1', { spec: { unschedulable: true } })],
      ...AWAY,
      topologies: { value: [topology('worker-1', { pmdCPUs: '1,17' })] },
      ...NOT_READY,
    });
    const order = found.map(({ area, severity }) => `${area} ${severity}`).join();
    assert.equal(order, 'webhook error,extender error,kubelet error,pods warning');
  });

  it('makes no claim about objects that it may not read', () => {
    const forbidden = Object.fromEntries(Object.keys(GOOD).map((key) => [key, { missing: 'forbidden' }]));
    const reports = ALL.map((check) => check({ ...(forbidden as unknown as DoctorFacts), now: NOW, nodes: [] }));
    assert.equal(reports.flatMap(({ findings }) => findings.map(({ what }) => what)).join(), '');
    for (const { area, unseen } of reports) assert.ok(unseen.length > 0, area);
    assert.match(checkDpus(undefined, 5).unseen.join(), /leases of DPUs \(you may not read them\)/);
  });

  it('names VMs whose CPU mask is applied only after they run, and nodes that apply none', () => {
    const annotations = {
      'plumbline.dev/cpu-mask': '1:2',
      'plumbline.dev/cpu-mask-start': 'running',
      'plumbline.dev/decision': '{"padding":0}',
    };
    const launchers = value(launcher('late', { metadata: { annotations } }), ...GOOD.launchers.value!);
    const { findings, seen } = checkPods({ ...GOOD, launchers });
    assert.deepEqual(findings, []);
    const late = '1 VM whose CPU mask is set after it starts (plumbline.dev/cpu-mask-start: running): default/late';
    assert.ok(seen.includes(late), seen.join('; '));
    const agents = checkAgents({ ...GOOD, topologies: { value: [topology('worker-1', { pinsVMs: false })] } });
    assert.deepEqual(agents.findings, []);
    assert.match(agents.seen.join('; '), /1 node without CPU masks \(--vm-pinning off\), .*: worker-1/);
  });

  it('notes once that a launcher has another scheduler', () => {
    const { findings, seen } = checkExtender({ ...GOOD, launchers: { value: [pending('other', 'volcano')] } });
    assert.deepEqual(findings, []);
    assert.equal(
      seen.filter((text) => text.includes('another')).join(),
      '1 pending launcher for another scheduler (volcano)',
    );
  });

  it('does not keep private keys', () => {
    assert.ok(!JSON.stringify(GOOD).includes('tls.key'));
  });

  describe('as a command', function () {
    this.timeout(300_000);
    const cluster = useCluster((made) => made.node('worker-1'));
    const doctor = (...args: string[]) => cluster.run('doctor', ...args);

    it('reports a half-installed cluster with reasons and next steps, and exits with 1', async () => {
      const { stdout, stderr, status } = await doctor();
      assert.equal(stderr, '');
      assert.equal(status, 1);
      const first =
        /^✘ installed: there is no MutatingWebhookConfiguration plumbline-webhook\n {4}impact: .+\n {4}also: .+\n/;
      assert.match(stdout, first);
      assert.match(stdout, /\n\? skipped\n\d+ errors?, \d+ warnings?; \d+ checks? skipped\n$/);
    });

    it('exits with 0 for an area without findings', async () => {
      const { stdout, status } = await doctor('kubelet', 'networks');
      assert.equal(status, 0);
      assert.match(stdout, /^✔ kubelet: 1 kubelet, v1.36.2\n✔ networks: .*physnet0\n\nno problems found\n$/);
    });

    it('watches Leases of DPUs for a while, only if there are any', async () => {
      // If it waited without Leases, this test would never end.
      assert.equal((await doctor('dpu', '--watch', '3600')).status, 0);
      await cluster.node('dpu-1', { labels: { 'k8s.ovn.org/dpu-host': '' } });
      const { stdout, status } = await doctor('dpu', '--watch', '0', '-o', 'name');
      assert.equal(stdout, 'node/dpu-1\n');
      assert.equal(status, 1);
    });
  });
});
