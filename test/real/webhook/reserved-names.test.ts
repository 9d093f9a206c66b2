import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { onControlPlane, podOf } from '../control-plane.ts';
import { installPolicies, type Policies } from './policies-alone.ts';

const DECISION = 'plumbline.dev/decision';
const PLACEMENT = 'plumbline.dev/placement';
const MERGE = 'application/merge-patch+json';
const PODS = '/api/v1/namespaces/default/pods';
const DRY = { query: { dryRun: 'All' } };

describe('Plumbline’s own annotations, protected by the policies alone', function () {
  onControlPlane(this);
  let installed: Policies;
  let client: KubeClient;
  before(async () => {
    installed = await installPolicies({});
    client = installed.client;
  });
  after(() => installed?.stop());

  const pod = (name: string, annotations: Record<string, string>, labels: Record<string, string> = {}) =>
    podOf({ name, annotations, labels });
  const annotate = (name: string, annotations: object, subresource = '') =>
    client.patch(`${PODS}/${name}${subresource}`, MERGE, { metadata: { annotations } });
  const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };

  for (const name of [DECISION, PLACEMENT]) {
    const settled = new RegExp(`annotation ${name} is reserved for Plumbline; it cannot be added, changed or removed`);

    it(`${name}: not allowed on a pod without a decision`, async () => {
      for (const value of ['{}', '']) {
        const create = () => client.create(PODS, pod('tenants', { [name]: value }), DRY);
        await assert.rejects(create, new RegExp(`${name} is reserved; only Plumbline may set it`));
      }
    });

    it(`${name}: neither changed nor removed after creation, also through the status`, async () => {
      const decided = `decided-${name.split('/')[1]}`;
      await client.create(PODS, pod(decided, { [name]: '{}' }, LAUNCHER));
      for (const subresource of ['', '/status']) {
        for (const value of ['{"preferred":[]}', '', null]) {
          await assert.rejects(annotate(decided, { [name]: value }, subresource), settled, `${value}${subresource}`);
        }
      }
      await annotate(decided, { note: 'mine' });
      await annotate(decided, { note: 'of its kubelet' }, '/status');
      await client.patch(`${PODS}/${decided}/status`, MERGE, { status: { phase: 'Running' } });
    });

    it(`${name}: not added after creation`, async () => {
      const bare = `bare-${name.split('/')[1]}`;
      await client.create(PODS, pod(bare, {}, LAUNCHER));
      for (const subresource of ['', '/status'])
        await assert.rejects(annotate(bare, { [name]: '' }, subresource), settled);
    });
  }

  it('none of Plumbline’s annotations can be written through a Binding, which the API server copies to the pod', async () => {
    await client.create(PODS, pod('unbound', {}, LAUNCHER));
    const binding = (annotations: object) => ({
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'unbound', annotations },
      target: { kind: 'Node', name: 'worker' },
    });
    for (const path of [`${PODS}/unbound/binding`, '/api/v1/namespaces/default/bindings']) {
      for (const name of [DECISION, PLACEMENT, 'plumbline.dev/cpu-mask', 'plumbline.dev/numa-affinity']) {
        await assert.rejects(
          client.create(path, binding({ [name]: '0' }), DRY),
          deniedByPolicy('plumbline-bindings'),
          `${path} ${name}`,
        );
      }
    }
    await client.create(`${PODS}/unbound/binding`, binding({ note: 'mine' }));
    const { metadata } = (await client.get(`${PODS}/unbound`)) as { metadata: { annotations: object } };
    assert.deepEqual(metadata.annotations, { note: 'mine' });
  });

  // Names as long as they may be.
  for (const [count, message] of [
    [128, undefined],
    [129, /a pod with whole cores may have 128 containers, and this one has 129/],
  ] as const) {
    it(`a pod with whole cores and ${count} containers is ${message ? 'refused with the limit' : 'admitted'}`, async () => {
      const amounts = { cpu: '2', memory: '1Mi' };
      const containers = Array.from({ length: count }, (_, index) => ({
        name: `${'c'.repeat(58)}-${index}`,
        image: 'none',
        resources: { requests: amounts, limits: amounts },
      }));
      const cpus = Object.fromEntries(containers.map(({ name }) => [name, 2]));
      const aligned = pod('aligned', { [DECISION]: JSON.stringify({ cpus }) }, LAUNCHER);
      const create = () => client.create(PODS, { ...aligned, spec: { containers } }, DRY);
      if (message === undefined) await create();
      else await assert.rejects(create, message);
    });
  }
});
