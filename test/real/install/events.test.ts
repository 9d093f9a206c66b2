import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { bindingOf, installPolicies, type Policies, userSubject } from '../webhook/policies-stage.ts';

const MERGE = 'application/merge-patch+json';
const PATH = '/api/v1/namespaces/default/events';
const NEW_PATH = '/apis/events.k8s.io/v1/namespaces/default/events';
const POLICY = deniedByPolicy('plumbline-events');
const EXTENDER = 'plumbline-scheduler-plugin';
const AGENT = 'plumbline-node-agent';
const KUBELET_REASONS = [
  'SMTAlignmentError',
  'TopologyAffinityError',
  'UnexpectedAdmissionError',
  'FailedCreatePodSandBox',
];

describe('Events that explain and doctor rely on, on a real API server', function () {
  onControlPlane(this);
  let installed: Policies;
  let tenant: KubeClient;
  let kubelet: KubeClient;
  let extender: KubeClient;
  let count = 0;

  before(async () => {
    const system = { kind: 'ServiceAccount', namespace: 'plumbline-system' };
    installed = await installPolicies({
      users: ['tenant', 'system:node:worker'],
      after: [
        bindingOf(userSubject('tenant'), 'cluster-admin', 'default', 'tenant'),
        bindingOf(userSubject('system:node:worker'), 'system:node', undefined, 'worker'),
        bindingOf({ ...system, name: 'plumbline-scheduler' }, 'plumbline-scheduler-plugin', undefined),
      ],
    });
    tenant = await installed.user('tenant');
    kubelet = await installed.user('system:node:worker');
    extender = await installed.account('plumbline-system', 'plumbline-scheduler');
  });
  after(() => installed?.stop());

  const event = (more: object) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `e-${++count}` },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'vm' },
    type: 'Warning',
    reason: 'CannotEvict',
    message: 'x',
    ...more,
  });
  const newEvent = (more: object) => ({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `e-${++count}` },
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'vm' },
    eventTime: new Date().toISOString().replace('Z', '000Z'),
    reportingController: 'example.org/mine',
    reportingInstance: 'x',
    action: 'x',
    type: 'Warning',
    reason: 'CannotEvict',
    ...more,
  });

  const forged: [string, string, () => object][] = [
    ['the extender’s', PATH, () => event({ source: { component: EXTENDER } })],
    ['the extender’s, as the reporting component', PATH, () => event({ reportingComponent: EXTENDER })],
    ['the extender’s, in the newer form', NEW_PATH, () => newEvent({ reportingController: EXTENDER })],
    ['an agent’s', PATH, () => event({ source: { component: AGENT, host: 'worker' } })],
    ['an agent’s, in the newer form', NEW_PATH, () => newEvent({ reportingController: AGENT })],
    ...KUBELET_REASONS.flatMap((reason): [string, string, () => object][] => [
      [`a kubelet’s ${reason}`, PATH, () => event({ reason, source: { component: 'kubelet', host: 'worker' } })],
      [`${reason} without a source`, PATH, () => event({ reason })],
      [`${reason} in the newer form`, NEW_PATH, () => newEvent({ reason, reportingController: 'kubelet' })],
    ]),
  ];
  for (const [what, path, object] of forged) {
    it(`a tenant cannot write ${what}, although it may write Events in its namespace`, async () => {
      await assert.rejects(tenant.create(path, object()), POLICY);
    });
  }

  it('a tenant may write other Events, and cannot change them into protected ones', async () => {
    const { metadata } = event({});
    await tenant.create(PATH, event({ metadata, reason: 'Mine', source: { component: 'mine' } }));
    for (const change of [{ source: { component: EXTENDER } }, { reason: 'SMTAlignmentError' }]) {
      await assert.rejects(tenant.patch(`${PATH}/${metadata.name}`, MERGE, change), POLICY);
    }
    await tenant.patch(`${PATH}/${metadata.name}`, MERGE, { message: 'y' });
  });

  it('the extender writes its own, and a tenant cannot change them', async () => {
    const { metadata } = event({});
    await extender.create(PATH, event({ metadata, source: { component: EXTENDER }, reportingComponent: EXTENDER }));
    for (const change of [{ message: 'forged' }, { source: null }]) {
      await assert.rejects(tenant.patch(`${PATH}/${metadata.name}`, MERGE, change), POLICY);
    }
    await assert.rejects(extender.create(PATH, event({ source: { component: AGENT } })), POLICY);
  });

  for (const reason of KUBELET_REASONS) {
    it(`a kubelet writes ${reason} for its own node only`, async () => {
      const of = (host: string) => event({ reason, source: { component: 'kubelet', host } });
      await kubelet.create(PATH, of('worker'));
      await assert.rejects(kubelet.create(PATH, of('other')), POLICY);
      await assert.rejects(
        kubelet.create(PATH, event({ reason, source: { component: EXTENDER, host: 'worker' } })),
        POLICY,
      );
    });
  }

  it('an administrator of the cluster may write all of them', async () => {
    await installed.client.create(PATH, event({ source: { component: EXTENDER } }));
    await installed.client.create(PATH, event({ reason: 'SMTAlignmentError' }));
  });
});
