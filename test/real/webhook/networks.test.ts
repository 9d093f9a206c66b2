import assert from 'node:assert/strict';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { deniedByWebhook } from '../../support/denied.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type Injection, installInjector } from './injector.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';
import { type CreatedPod, launcherFor, localnet, nadOf, nodeWith, sidecar } from './objects.ts';
import { announcedOf, cpusOf, devicesOf, type Scene, sceneOf } from './stage.ts';

const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
const NETWORKS = 'k8s.v1.cni.cncf.io/networks';
const DRY = { dryRun: 'All' };

describe('the webhook behind a real API server: networks and other webhooks', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  let scene: Scene;
  before(async () => {
    installed = await installWebhook();
    scene = sceneOf(installed);
    const { plane } = installed;
    const labels = { 'k8s.ovn.org/primary-user-defined-network': '' };
    await plane.create(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'primary', labels } },
      nadOf('primary', 'udn', { topology: 'layer2', role: 'primary' }),
      localnet('tenant', 'east'),
      localnet('tenant', 'west'),
      localnet('tenant', 'odd', 'rack 7/left'),
      localnet('tenant', 'nowhere'),
    );
    const physnets = { east: '0', west: '1', 'rack 7/left': '0' };
    await nodeWith(plane, 'worker', { threads: 2, physnets, tunnel: '0' });
    await until('the report and the networks to be seen', async () => {
      const vmi = { annotations: ANNOTATED, networks: { a: 'east' } };
      const udn = { namespace: 'primary', annotations: { 'plumbline.dev/numa-affinity': '{"default":"required"}' } };
      const [data, primary] = [
        await scene.launcher('probe', { cpu: '9', vmi }),
        await scene.launcher('probe', { cpu: '9', vmi: udn }),
      ];
      return devicesOf(data).length > 0 && devicesOf(primary).length > 0;
    });
  });
  after(() => installed?.stop());

  describe('W13: networks', () => {
    const assertWarned = (pod: CreatedPod, says: RegExp) => assert.match(announcedOf(pod).join('\n'), says);

    it('a new definition is found', async () => {
      for (let i = 0; i < 10; i++) {
        await installed.plane.create(localnet('tenant', `fresh-${i}`, 'east'));
        const pod = await scene.launcher(`fresh-${i}`, { cpu: '9', vmi: { networks: { a: `fresh-${i}` } } });
        assert.deepEqual(devicesOf(pod), ['east']);
      }
    });

    it('a physnet that no node reports is admitted with a warning that names it', async () => {
      const pod = await scene.launcher('nowhere', { cpu: '9', vmi: { networks: { a: 'nowhere', b: 'east' } } });
      assert.deepEqual(devicesOf(pod), ['east']);
      assertWarned(pod, /no node reports the physnet nowhere of tenant\/nowhere/);
    });

    it('a definition that does not exist is admitted with a warning that names it', async () => {
      const pod = await scene.launcher('absent', { cpu: '9', vmi: { networks: { a: 'none' } } });
      assert.deepEqual(devicesOf(pod), []);
      assertWarned(pod, /there is no NetworkAttachmentDefinition tenant\/none/);
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
        assertWarned(pod, new RegExp(`there is no NetworkAttachmentDefinition ${network} that its namespace may use`));
        const decision = pod.metadata.annotations?.['plumbline.dev/decision'] ?? '';
        return [devicesOf(pod), decision.replaceAll(network, 'NETWORK')];
      };
      assert.deepEqual(devicesOf(await attached('default/shared')), ['east']);
      assert.deepEqual(await answerFor('other/secret'), await answerFor('other/absent'));
    });

    it('required physnets without a common NUMA node cause a warning', async () => {
      const pod = await scene.launcher('apart', { cpu: '9', vmi: { networks: { a: 'east', b: 'west' } } });
      assert.deepEqual(devicesOf(pod), ['east', 'west']);
      assertWarned(pod, /the required networks have no common NUMA node .* a \(physnet east\), b \(physnet west\)/);
    });

    it('both annotation forms and duplicates give the same result; an invalid resource name is encoded', async () => {
      const vmi = await scene.vmi('forms', { networks: { a: 'east', b: 'odd', c: 'east' } });
      for (const text of [
        'east,odd,tenant/east',
        '[{"name":"east"},{"name":"odd","namespace":"tenant"},{"name":"east"}]',
      ]) {
        const pod = await scene.admit(launcherFor(vmi, { cpu: '9', annotations: { [NETWORKS]: text } }), DRY);
        assert.deepEqual(devicesOf(pod), ['east', `x--${Buffer.from('rack 7/left').toString('hex')}`]);
      }
    });

    it('a primary user-defined network is the pod network of a labelled namespace', async () => {
      const annotations = { 'plumbline.dev/numa-affinity': '{"default":"required"}' };
      const pod = await scene.launcher('udn', { cpu: '9', vmi: { namespace: 'primary', annotations } });
      assert.deepEqual(devicesOf(pod), ['plumbline.dev/tunnel']);
      assert.match(pod.metadata.annotations?.['plumbline.dev/decision'] ?? '', /"network":"primary\/udn"/);
    });

    it('a preferred network reaches the extender and gets no device; an unimportant one does neither', async () => {
      const annotations = { 'plumbline.dev/numa-affinity': '{"a":"preferred","b":"none"}' };
      const pod = await scene.launcher('wishes', {
        cpu: '9',
        vmi: { annotations, networks: { a: 'east', b: 'west' } },
      });
      assert.deepEqual(devicesOf(pod), []);
      const wishes = JSON.parse(pod.metadata.annotations?.['plumbline.dev/placement'] ?? '{}') as object;
      assert.deepEqual(wishes, {
        preferred: ['physnet.plumbline.dev/east'],
        interfaces: { 'physnet.plumbline.dev/east': 'a' },
      });
    });

    it('a VM on the shared pool gets no device', async () => {
      const pod = await scene.launcher('shared', { cpu: '900m', vmi: { networks: { a: 'east' } } });
      assert.deepEqual(devicesOf(pod), []);
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

    // Plumbline's configuration is plumbline-webhook: names before and after it, and each of the two first.
    const orders: [string, string][] = [
      ['aa-resources', 'bb-virtiofs'],
      ['bb-resources', 'aa-virtiofs'],
      ['aa-resources', 'zz-virtiofs'],
      ['zz-resources', 'aa-virtiofs'],
      ['yy-resources', 'zz-virtiofs'],
      ['zz-resources', 'yy-virtiofs'],
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

    for (const name of ['aa-mesh', 'zz-mesh']) {
      it(`${name}: a container that prevents Guaranteed is named in the refusal of the launcher`, () =>
        whileInjecting([[name, mesh]], () =>
          until('the injector to be called', () =>
            scene.launcher('meshed', { cpu: '9', labels, vmi }).then(
              () => false,
              ({ message }: Error) => /container mesh prevents exclusive CPUs for the launcher pod/.test(message),
            ),
          ),
        ));
    }

    it('have each note once in the decision, however often Plumbline is called', () =>
      whileInjecting([['zz-virtiofs', virtiofs]], async () => {
        await until('the injector to be called', async () =>
          cpusOf(await scene.admit(launcherFor(await scene.vmi('warm', vmi), { cpu: '9', labels }), DRY)).includes(
            '100m',
          ),
        );
        const created = await scene.vmi('once', { ...vmi, networks: { a: 'nowhere' } });
        const pod = await scene.admit(launcherFor(created, { cpu: '9', labels }));
        const reasons = announcedOf(pod).map((text) => text.split(':')[0]);
        assert.deepEqual(reasons, ['Normal PaddedToWholeCores', 'Warning LauncherNotAsAsked']);
      }));
  });

  describe('while the webhook is down', () => {
    it('pods of its own namespace start, and launchers elsewhere are refused', async () => {
      const vmi = await scene.vmi('own', { namespace: 'plumbline-system', annotations: ANNOTATED });
      await installed.stopWebhook();
      assert.deepEqual(cpusOf(await scene.admit(launcherFor(vmi, { cpu: '9' }), DRY)), ['9']);
      await assert.rejects(
        scene.launcher('away', { cpu: '9', vmi: { annotations: ANNOTATED } }),
        /failed calling webhook "launcher\.plumbline\.dev"/,
      );
    });
  });
});
