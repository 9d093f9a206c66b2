import assert from 'node:assert/strict';
import { until } from '../../support/until.ts';
import { namespaceOf, onControlPlane, podOf } from '../control-plane-stage.ts';
import { objectsOf, render } from '../install/rendered-fixture.ts';
import { type Injection, type InstalledWebhook, installInjector, installWebhook } from './installed-stage.ts';
import { type CreatedPod, cpusOf, reportingNode } from './objects-fixture.ts';

const ALIGN = { 'plumbline.dev/align': 'whole-cores' };
const DRY = { dryRun: 'All' };
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';
const MUTATING = `${CONFIGURATIONS}/mutatingwebhookconfigurations/plumbline-opt-in`;
const VALIDATING = `${CONFIGURATIONS}/validatingwebhookconfigurations`;

function ordinaryPod(cpus: readonly string[], labels: Record<string, string> = {}) {
  const containers = cpus.map((cpu, index) => ({
    name: `c${index}`,
    image: 'none',
    resources: { limits: { cpu, memory: '1Gi' } },
  }));
  return podOf({ generateName: 'app-', annotations: ALIGN, labels }, { containers });
}

describe('the webhook behind a real API server: policies and ordinary pods', function () {
  onControlPlane(this);
  let installed: InstalledWebhook;
  before(async () => {
    installed = await installWebhook();
    const { plane } = installed;
    await plane.create(namespaceOf('tenant'));
    await reportingNode(plane, 'worker', {});
    await until('the report to be seen', async () => cpusOf(await create(ordinaryPod(['3']), DRY))[0] === '4');
  });
  after(() => installed?.stop());

  const create = async (pod: object, query: Record<string, string> = {}, namespace = 'tenant') =>
    (await installed.client.create(`/api/v1/namespaces/${namespace}/pods`, pod, { query })) as CreatedPod;

  describe('a later webhook that undoes the changes', () => {
    const injected = ordinaryPod(['3'], { injected: 'true' });
    const undo: Injection = () =>
      ['limits', 'requests'].map((side) => ({
        op: 'replace',
        path: `/spec/containers/0/resources/${side}/cpu`,
        value: '3',
      }));
    const refusal = () =>
      create(injected, DRY).then(
        () => '',
        ({ message }: Error) => message,
      );
    let remove = async () => {};
    before(async () => {
      remove = await installInjector(installed.plane, 'zz-injector', undo);
      await until('the injector to be called', async () => (await refusal()) !== '');
    });
    after(() => remove());

    it('is refused by the webhook', async () =>
      assert.match(await refusal(), /another webhook changed .*cpu should be "4"|no longer has the CPUs/));

    it('is refused by the policies alone', async () => {
      const path = `${VALIDATING}/plumbline-webhook`;
      const { metadata, ...configuration } = (await installed.client.get(path)) as { metadata: { name: string } };
      await installed.client.delete(path);
      await until('the policy alone to refuse', async () =>
        /container c0 no longer has the CPUs that Plumbline set/.test(await refusal()),
      );
      await installed.client.create(VALIDATING, { ...configuration, metadata: { name: metadata.name } });
    });
  });

  // Nested, because mocha runs the tests of a suite before its inner suites.
  describe('without the webhook', () => {
    it('the MutatingAdmissionPolicy rounds alone, and pods are not rounded twice', async () => {
      const { client, plane } = installed;
      await plane.create(...objectsOf(render('base/policies/mutating')));
      assert.deepEqual(cpusOf(await create(ordinaryPod(['3', '8']), DRY)), ['4', '8']);
      await client.delete(MUTATING);
      await client.delete(`${VALIDATING}/plumbline-webhook`);
      await until('the policy to round alone', async () => {
        const pod = await create(ordinaryPod(['3', '8']), DRY);
        assert.equal(pod.metadata.annotations?.['plumbline.dev/decision'], undefined);
        assert.equal(pod.spec.containers[0]?.resources.limits['plumbline.dev/placed'], '1');
        return cpusOf(pod).join() === '4,8';
      });
      const { spec, ...asks } = ordinaryPod(['500m']);
      const first = { name: 'first', image: 'none', resources: { limits: { cpu: '5', memory: '1Gi' } } };
      const pod = await create({ ...asks, spec: { ...spec, initContainers: [first] } }, DRY);
      const { limits } = pod.spec.initContainers?.[0]?.resources ?? {};
      assert.deepEqual(limits, { cpu: '6', memory: '1Gi', 'plumbline.dev/placed': '1' });
      assert.deepEqual(cpusOf(pod), ['500m']);
      assert.deepEqual(cpusOf(await create(ordinaryPod(['3']), DRY, 'plumbline-system')), ['3']);
    });
  });
});
