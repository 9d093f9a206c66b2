import assert from 'node:assert/strict';
import { readStatus } from '../../cli/status/read.ts';
import { statusLines } from '../../cli/status/run.ts';
import { lineText } from '../../cli/support/terminal.ts';
import { readVersions } from '../../cli/version/run.ts';
import { NODE, NOW, STATE_TABLE } from '../diagnosis/state-table-fixture.ts';
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
const runs = STATE_TABLE.find(({ title }) => title === 'runs as promised')!.objects;

const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const OFF = 'switched off: there is no RoleBinding plumbline-webhook-required in plumbline-system';
const ours = (webhook: object) => ({
  metadata: { name: 'plumbline-webhook' },
  webhooks: [{ name: 'launcher.plumbline.dev', clientConfig: {}, ...webhook }],
});

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

describe('plumbline status', () => {
  const differs = (component: string, ago: number, namespace = 'tenants') => ({
    metadata: { name: `e-${component}-${ago}`, namespace },
    involvedObject: { kind: 'Pod', namespace, name: 'virt-launcher-x' },
    source: { component },
    reason: 'PredictionDiffers',
    message: 'CPUs 1-2 were predicted, but the kubelet assigned CPUs 3-4',
    lastTimestamp: seconds(ago),
  });
  const cases: readonly [string, Objects, string | undefined, object][] = [
    ['nothing is wrong', runs, undefined, {}],
    [
      'a Deployment without a ready replica',
      {
        ...runs,
        [DEPLOYMENTS]: [deployment('plumbline-scheduler', { readyReplicas: 1 }), deployment('plumbline-webhook', {})],
      },
      undefined,
      { notReady: [{ deployment: 'plumbline-webhook', text: 'no replica is ready' }] },
    ],
    [
      'an agent that is silent',
      {
        ...runs,
        '/apis/coordination.k8s.io/v1/leases': [
          {
            metadata: { name: `plumbline-agent-${NODE}`, namespace: 'plumbline-system' },
            spec: { renewTime: seconds(600).replace('Z', '000Z') },
          },
        ],
      },
      undefined,
      { silentAgents: [{ node: NODE, silentSeconds: 600 }], notAsRequested: [SILENT] },
    ],
    [
      'a DPU that is dead',
      {
        ...runs,
        '/api/v1/nodes': [
          {
            metadata: { name: 'd1' },
            status: { conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'no renewal' }] },
          },
        ],
      },
      undefined,
      { deadDpus: [{ node: 'd1', text: 'no renewal' }] },
    ],
    [
      'a False condition of a node',
      {
        ...runs,
        [TOPOLOGIES]: runs[TOPOLOGIES]!.map((topology) => ({
          ...topology,
          status: {
            ...(topology['status'] as object),
            conditions: [
              {
                type: 'NetworkMapValid',
                status: 'False',
                reason: 'Invalid',
                message: 'line 3',
                lastTransitionTime: '',
              },
              { type: 'Other', status: 'True', reason: 'Fine', message: '', lastTransitionTime: '' },
            ],
          },
        })),
      },
      undefined,
      { falseConditions: [{ node: NODE, condition: 'NetworkMapValid', text: 'line 3' }] },
    ],
    [
      'webhooks that are switched off',
      { ...runs, [WEBHOOKS]: [ours({ matchConditions: [{ name: 'required', expression: 'true' }] })] },
      undefined,
      { webhooksOff: [{ webhook: 'plumbline-webhook', text: OFF }] },
    ],
    ['webhooks that are always on', { ...runs, [WEBHOOKS]: [ours({})] }, undefined, {}],
    [
      'webhooks that do not exist',
      { ...runs, [WEBHOOKS]: [] },
      undefined,
      {
        webhooksOff: [{ webhook: 'plumbline-webhook', text: 'without its MutatingWebhookConfiguration' }],
      },
    ],
    [
      'a wrong prediction, from Plumbline’s extender and of the last hour only',
      {
        ...runs,
        '/api/v1/events': [
          differs('plumbline-scheduler-plugin', 60),
          differs('other-writer', 60),
          differs('plumbline-scheduler-plugin', 7200),
        ],
      },
      undefined,
      {
        mispredictions: [
          { pod: 'tenants/virt-launcher-x', text: 'CPUs 1-2 were predicted, but the kubelet assigned CPUs 3-4' },
        ],
      },
    ],
    [
      'a wrong prediction in another namespace',
      { ...runs, '/api/v1/events': [differs('plumbline-scheduler-plugin', 60, 'others')] },
      'tenants',
      {},
    ],
  ];
  for (const [title, objects, namespace, expected] of cases) {
    it(title, async () => {
      const { notes, ...lists } = await statusOf(objects, namespace);
      const filled = Object.entries(lists).filter(([, list]) => list.length > 0);
      assert.deepEqual(Object.fromEntries(filled), expected);
    });
  }

  it('names the parts that do not work in its first line, a condition of many nodes once', async () => {
    const condition = {
      type: 'StateSaved',
      status: 'False',
      reason: 'Unusable',
      message: 'full',
      lastTransitionTime: '',
    };
    const [topology] = runs[TOPOLOGIES]!;
    const nodes = Array.from({ length: 5 }, (_, i) => ({
      ...topology!,
      metadata: { name: `n${i}` },
      status: { ...(topology!['status'] as object), conditions: [condition] },
    }));
    const objects = { ...runs, [TOPOLOGIES]: nodes, [DEPLOYMENTS]: [deployment('plumbline-webhook', {})] };
    const lines = statusLines(await statusOf(objects), undefined, { color: false, width: 200 });
    const texts = lines.map((line) => lineText(line));
    assert.equal(
      texts[0],
      'Not working: plumbline-webhook (no replica is ready); n0, n1, n2 and 2 more (StateSaved is False: full)',
    );
    assert.equal(texts.filter((text) => /^ {2}n\d/.test(text)).length, 1);
  });

  it('lists ten VMs with the same reason by name, and counts the rest', async () => {
    const full = STATE_TABLE.find(({ title }) => title === 'the node is full')!.objects;
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
    const full = STATE_TABLE.find(({ title }) => title === 'the node is full')!.objects;
    const machines = [machine('fw', {}, 60), machine('z-new', {}, 10), machine('y-old', {}, 20)];
    const status = await statusOf({ ...full, '/apis/kubevirt.io/v1/virtualmachines': machines });
    assert.deepEqual(
      status.waiting.map(({ name, verdict }) => `${name} ${verdict}`),
      ['y-old broken', 'z-new broken', 'fw waiting'],
    );
    const lines = statusLines(status, undefined, { color: false, width: 80 });
    assert.equal(lines.at(-1), 'plumbline explain vm/y-old -n tenants shows what would help');
  });

  it('names the namespace only if it shows all of them, and cuts lines to the screen', async () => {
    const objects = STATE_TABLE.find(({ title }) => title === 'the node is full')!.objects;
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
