import assert from 'node:assert/strict';
import { readStatus } from '../../cli/status/read.ts';
import { statusLines } from '../../cli/status/run.ts';
import { lineText } from '../../cli/support/terminal.ts';
import { readVersions } from '../../cli/version/run.ts';
import { NODE, NOW, STATE_TABLE } from '../diagnosis/state-table-fixture.ts';
import { leaseObject } from './cluster-fixture.ts';
import { createObjectsApi, type Objects } from './objects-api-stand-in.ts';

const DEPLOYMENTS = '/apis/apps/v1/deployments';
const statusOf = (objects: Objects, namespace?: string) =>
  readStatus({ client: createObjectsApi({ [DEPLOYMENTS]: [], ...objects }) }, namespace, NOW);
const deployment = (name: string, status: object) => ({
  metadata: { name, namespace: 'plumbline-system' },
  spec: { replicas: 2, template: { spec: { containers: [] } } },
  status,
});
const seconds = (ago: number) => new Date(NOW - ago * 1000).toISOString();
const objectsIn = (state: string) => STATE_TABLE.find(({ title }) => title === state)!.objects;
const runs = objectsIn('runs as promised');

const falseCondition = (type: string, reason: string, message: string) => {
  return { type, status: 'False', reason, message, lastTransitionTime: '' };
};

const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const MACHINES = '/apis/kubevirt.io/v1/virtualmachines';
const OFF = 'switched off: there is no RoleBinding plumbline-webhook-required in plumbline-system';
const ours = (webhook: object) => ({
  metadata: { name: 'plumbline-webhook' },
  webhooks: [{ name: 'launcher.plumbline.dev', clientConfig: {}, ...webhook }],
});

const OLD_LEASE = leaseObject(`plumbline-agent-${NODE}`, NOW - 600_000);
const DEAD_DPU = {
  metadata: { name: 'd1' },
  status: { conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'no renewal' }] },
};

/** The VM of `runs`, if the agent of its node is silent. */
const SILENT = {
  namespace: 'tenants',
  name: 'fw',
  state: 'not-as-requested',
  verdict: 'degraded',
  reason: 'AgentSilent',
  text: `on ${NODE}, whose agent has stopped reporting`,
  node: NODE,
  ageSeconds: 60,
};

const DIFFERENCE = 'CPUs 1-2 were predicted, but the kubelet assigned CPUs 3-4';

describe('plumbline status', () => {
  const differs = (component: string, ago: number, namespace = 'tenants') => ({
    metadata: { name: `e-${component}-${ago}`, namespace },
    involvedObject: { kind: 'Pod', namespace, name: 'virt-launcher-x' },
    source: { component },
    reason: 'PredictionDiffers',
    message: DIFFERENCE,
    lastTimestamp: seconds(ago),
  });
  const cases: readonly [title: string, changes: Objects, expected: object, namespace?: string][] = [
    ['nothing is wrong', {}, {}],
    [
      'a Deployment without a ready replica',
      {
        [DEPLOYMENTS]: [deployment('plumbline-scheduler', { readyReplicas: 1 }), deployment('plumbline-webhook', {})],
      },
      { notReady: [{ deployment: 'plumbline-webhook', text: 'no replica is ready' }] },
    ],
    [
      'an agent that is silent',
      {
        '/apis/coordination.k8s.io/v1/leases': [OLD_LEASE],
      },
      { silentAgents: [{ node: NODE, silentSeconds: 600 }], notAsRequested: [SILENT] },
    ],
    [
      'a DPU that is dead',
      {
        '/api/v1/nodes': [DEAD_DPU],
      },
      { deadDpus: [{ node: 'd1', text: 'no renewal' }] },
    ],
    [
      'a False condition of a node',
      {
        [TOPOLOGIES]: runs[TOPOLOGIES]!.map((topology) => ({
          ...topology,
          status: {
            ...(topology['status'] as object),
            conditions: [
              falseCondition('NetworkMapValid', 'Invalid', 'line 3'),
              { ...falseCondition('Other', 'Fine', ''), status: 'True' },
            ],
          },
        })),
      },
      { falseConditions: [{ node: NODE, condition: 'NetworkMapValid', text: 'line 3' }] },
    ],
    [
      'webhooks that are switched off',
      { [WEBHOOKS]: [ours({ matchConditions: [{ name: 'required', expression: 'true' }] })] },
      { webhooksOff: [{ webhook: 'plumbline-webhook', text: OFF }] },
    ],
    ['webhooks that are always on', { [WEBHOOKS]: [ours({})] }, {}],
    [
      'webhooks that do not exist',
      { [WEBHOOKS]: [] },
      { webhooksOff: [{ webhook: 'plumbline-webhook', text: 'without its MutatingWebhookConfiguration' }] },
    ],
    [
      'a wrong prediction, from Plumbline’s extender and of the last hour only',
      {
        '/api/v1/events': [
          differs('plumbline-scheduler-plugin', 60),
          differs('other-writer', 60),
          differs('plumbline-scheduler-plugin', 7200),
        ],
      },
      { mispredictions: [{ pod: 'tenants/virt-launcher-x', text: DIFFERENCE }] },
    ],
    [
      'a wrong prediction in another namespace',
      { '/api/v1/events': [differs('plumbline-scheduler-plugin', 60, 'others')] },
      {},
      'tenants',
    ],
  ];
  for (const [title, changes, expected, namespace] of cases) {
    it(title, async () => {
      const { notes, ...lists } = await statusOf({ ...runs, ...changes }, namespace);
      const filled = Object.entries(lists).filter(([, list]) => list.length > 0);
      assert.deepEqual(Object.fromEntries(filled), expected);
    });
  }

  it('names the parts that do not work in its first line, a condition of many nodes once', async () => {
    const condition = falseCondition('StateSaved', 'Unusable', 'full');
    const [topology] = runs[TOPOLOGIES]!;
    const nodes = Array.from({ length: 5 }, (_, i) => ({
      ...topology!,
      metadata: { name: `n${i}` },
      status: { ...(topology!['status'] as object), conditions: [condition] },
    }));
    const objects = { ...runs, [TOPOLOGIES]: nodes, [DEPLOYMENTS]: [deployment('plumbline-webhook', {})] };
    const lines = statusLines(await statusOf(objects), undefined, { color: false, width: 200 });
    const texts = lines.map((line) => lineText(line));
    const faults = 'plumbline-webhook (no replica is ready); n0, n1, n2 and 2 more (StateSaved is False: full)';
    assert.equal(texts[0], `Not working: ${faults}`);
    assert.equal(texts.filter((text) => /^ {2}n\d/.test(text)).length, 1);
  });

  it('lists ten VMs with the same reason by name, and counts the rest', async () => {
    const full = objectsIn('the node is full');
    const { waiting, ...rest } = await statusOf(full);
    const [vm] = waiting;
    const many = Array.from({ length: 42 }, (_, i) => ({ ...vm!, name: `vm-${i}` }));
    const other = { ...vm!, name: 'other', text: 'another message' };
    const linesOf = (wide: boolean) =>
      statusLines({ waiting: [...many, other], ...rest }, undefined, { color: false, width: 80 }, wide);
    const texts = linesOf(false).map((line) => lineText(line));
    assert.equal(texts.filter((text) => /^ {2}\S+\/vm-/.test(text)).length, 10);
    assert.ok(texts.some((text) => text.startsWith(`  and 32 more: ${vm!.reason} `)));
    assert.ok(texts.some((text) => text.includes('another message')));
    assert.equal(linesOf(true).filter((line) => /^ {2}\S+\/vm-/.test(lineText(line))).length, 42);
  });

  it('says that a namespace does not exist', async () => {
    await assert.rejects(statusOf(runs, 'nosuch'), { message: 'there is no namespace nosuch', status: 4 });
  });

  it('shows broken VMs first, then those that wait longest, as the console does', async () => {
    const machine = (name: string, status: object, ago: number) => ({
      metadata: { name, namespace: 'tenants', creationTimestamp: seconds(ago) },
      spec: { runStrategy: 'Always', template: { spec: {} } },
      status,
    });
    const full = objectsIn('the node is full');
    const machines = [machine('fw', {}, 60), machine('z-new', {}, 10), machine('y-old', {}, 20)];
    const status = await statusOf({ ...full, [MACHINES]: machines });
    const order = status.waiting.map(({ name, verdict }) => `${name} ${verdict}`);
    assert.deepEqual(order, ['y-old broken', 'z-new broken', 'fw waiting']);
    const lines = statusLines(status, undefined, { color: false, width: 80 });
    assert.equal(lines.at(-1), 'plumbline explain vm/y-old -n tenants shows what would help');
  });

  it('shows a VM with metadata that cannot be read, such as a CPU mask that is too long, of its own or its template’s', async () => {
    const annotations = { 'plumbline.dev/cpu-mask': '0:'.repeat(10_000) };
    const spec = { runStrategy: 'Always', template: { metadata: { name: null, annotations }, spec: {} } };
    const machine = { metadata: { name: 'long', namespace: 'tenants', annotations }, spec };
    const { waiting } = await statusOf({ ...objectsIn('the node is full'), [MACHINES]: [machine] });
    assert.ok(waiting.some(({ name }) => name === 'long'));
  });

  it('names the namespace only if it shows all of them, and cuts lines to the screen', async () => {
    const objects = objectsIn('the node is full');
    const terminal = { color: false, width: 60 };
    const all = statusLines(await statusOf(objects), undefined, terminal).map((line) => lineText(line));
    assert.equal(all[0], '1 VM does not run');
    assert.match(all[2] ?? '', /^ {2}tenants\/fw {2}60 s {3}- {5}NoNodeFits/);
    assert.ok(all.every((line) => line.length <= 60));
    const one = statusLines(await statusOf(objects, 'tenants'), 'tenants', terminal).map((line) => lineText(line));
    assert.match(one[2] ?? '', /^ {2}fw /);
    const elsewhere = { ...objects, '/api/v1/namespaces': [{ metadata: { name: 'other' } }] };
    const none = statusLines(await statusOf(elsewhere, 'other'), 'other', terminal).map((line) => lineText(line));
    assert.deepEqual(none, ['no VM is waiting in namespace other (-A: all)']);
  });
});

describe('plumbline version', () => {
  it('reads the versions of the parts, KubeVirt and Kubernetes', async () => {
    const image = (name: string, tag: string) => ({
      metadata: { name: `${name}-${tag}`, namespace: 'plumbline-system' },
      spec: { containers: [{ name, image: `registry.example.com/plumbline-${name}:${tag}` }] },
      status: { conditions: [{ type: 'Ready', status: tag === '0.1.0' ? 'True' : 'False' }] },
    });
    const client = createObjectsApi({
      '/api/v1/pods': [image('webhook', '0.1.0'), image('node-agent', '0.1.0'), image('node-agent', '0.2.0')],
      '/apis/kubevirt.io/v1/kubevirts': [
        { metadata: { name: 'kubevirt' }, status: { observedKubeVirtVersion: 'v1.9.0' } },
      ],
    });
    assert.deepEqual(await readVersions(client), {
      kubernetes: null,
      kubevirt: 'v1.9.0',
      parts: [
        { part: 'webhook', version: '0.1.0', pods: 1, ready: 1 },
        { part: 'agents', version: '0.1.0', pods: 1, ready: 1 },
        { part: 'agents', version: '0.2.0', pods: 1, ready: 0 },
      ],
    });
  });
});
