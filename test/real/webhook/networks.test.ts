import assert from 'node:assert/strict';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { deniedByWebhook } from '../../support/denied.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type Injection, installInjector } from './injector.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';
import { launcherFor, localnet, nodeWith, sidecar } from './objects.ts';
import { cpusOf, devicesOf, type Scene, sceneOf } from './stage.ts';

const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
const NETWORKS = 'k8s.v1.cni.cncf.io/networks';

describe('the webhook behind a real API server: networks and other webhooks', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  let scene: Scene;
  before(async () => {
    installed = await installWebhook();
    scene = sceneOf(installed);
    const { plane } = installed;
    await plane.create(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
      localnet('tenant', 'east'),
    );
    await nodeWith(plane, 'worker', { threads: 2, physnets: { east: '0' } });
    await until('the report and the network to be seen', async () => {
      const vmi = { annotations: ANNOTATED, networks: { a: 'east' } };
      return devicesOf(await scene.launcher('probe', { cpu: '9', vmi })).length > 0;
    });
  });
  after(() => installed?.stop());

  describe('W13: networks', () => {
    it('a new definition is found', async () => {
      await installed.plane.create(localnet('tenant', 'fresh', 'east'));
      const pod = await scene.launcher('fresh', { cpu: '9', vmi: { networks: { a: 'fresh' } } });
      assert.deepEqual(devicesOf(pod), ['east']);
    });

    it('a definition of another namespace is as absent as one that does not exist', async () => {
      await installed.plane.create(
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } },
        localnet('other', 'secret', 'east'),
        localnet('default', 'shared', 'east'),
      );
      const attached = (network: string) =>
        scene.launcher('foreign', { cpu: '9', annotations: { [NETWORKS]: network } });
      const answerFor = async (network: string) => {
        const pod = await attached(network);
        const decision = pod.metadata.annotations?.['plumbline.dev/decision'] ?? '';
        assert.match(decision, new RegExp(`there is no NetworkAttachmentDefinition ${network} that its namespace may`));
        return [devicesOf(pod), decision.replaceAll(network, 'NETWORK')];
      };
      assert.deepEqual(devicesOf(await attached('default/shared')), ['east']);
      assert.deepEqual(await answerFor('other/secret'), await answerFor('other/absent'));
    });
  });

  it('W14: a tenant’s decision and placement are overwritten, and its own requests refused', async () => {
    const vmi = await scene.vmi('claims');
    const annotations = { 'plumbline.dev/decision': '{"cpus":{"compute":64}}', 'plumbline.dev/placement': '{}' };
    const pod = await scene.admit(launcherFor(vmi, { cpu: '8', annotations }));
    assert.equal(pod.metadata.annotations?.['plumbline.dev/decision'], '{"padding":0}');
    assert.equal(pod.metadata.annotations?.['plumbline.dev/placement'], undefined);
    for (const more of [{ 'physnet.plumbline.dev/east': '1' }, { 'plumbline.dev/tunnel': '1' }] as const) {
      await assert.rejects(
        scene.admit(launcherFor(vmi, { cpu: '8', more })),
        deniedByWebhook('launcher.plumbline.dev'),
      );
    }
  });

  describe('W8: other mutating webhooks', () => {
    /** As the network resources injector does: into the first container, whichever it is. */
    const networkResources: Injection = () =>
      ['requests', 'limits'].map((side) => ({
        op: 'add',
        path: `/spec/containers/0/resources/${side}/intel.com~1vf`,
        value: '1',
      }));
    const virtiofs: Injection = ({ spec }) =>
      spec.containers.some(({ name }) => name === 'virtiofs-data')
        ? []
        : [{ op: 'add', path: '/spec/containers/-', value: sidecar('virtiofs-data', { cpu: '100m', memory: '80M' }) }];
    const mesh: Injection = ({ spec }) =>
      spec.containers.some(({ name }) => name === 'mesh')
        ? []
        : [{ op: 'add', path: '/spec/containers/0', value: sidecar('mesh', { cpu: '100m', memory: '80M' }, {}) }];

    const whileInjecting = async (
      injectors: readonly (readonly [string, Injection])[],
      holds: () => Promise<unknown>,
    ) => {
      const removals: (() => Promise<void>)[] = [];
      try {
        for (const [name, inject] of injectors) removals.push(await installInjector(installed.plane, name, inject));
        await holds();
      } finally {
        for (const remove of removals) await remove();
      }
    };
    const labels = { injected: 'true' };
    const vmi = { annotations: ANNOTATED, networks: { a: 'east' } };

    // Plumbline's configuration is plumbline-webhook: names before it, around it and after it.
    const orders: [string, string][] = [
      ['aa-resources', 'bb-virtiofs'],
      ['zz-resources', 'aa-virtiofs'],
      ['yy-resources', 'zz-virtiofs'],
    ];
    for (const [resources, appender] of orders) {
      it(`${[resources, appender, 'plumbline-webhook'].sort().join(', ')}: the same pod, Guaranteed`, () =>
        whileInjecting(
          [
            [resources, networkResources],
            [appender, virtiofs],
          ],
          () =>
            until('both to be called, and the pod to be right', async () => {
              const pod = await scene.launcher('among', { cpu: '9', labels, vmi });
              const [compute, ...others] = pod.spec.containers;
              if (others.length === 0 || compute?.resources.limits['intel.com/vf'] === undefined) return false;
              assert.deepEqual(cpusOf(pod), ['10', '100m']);
              assert.deepEqual(devicesOf(pod), ['east']);
              assert.equal(pod.status.qosClass, 'Guaranteed');
              return true;
            }),
        ));
    }

    it('a container that prevents Guaranteed is named in the refusal of the launcher', () =>
      whileInjecting([['zz-mesh', mesh]], () =>
        until('the injector to be called', () =>
          scene.launcher('meshed', { cpu: '9', labels, vmi }).then(
            () => false,
            ({ message }: Error) => /container mesh prevents exclusive CPUs for the launcher pod/.test(message),
          ),
        ),
      ));
  });
});
