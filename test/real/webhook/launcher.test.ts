import assert from 'node:assert/strict';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { until } from '../../support/until.ts';
import { vector } from '../../support/vectors.ts';
import { namespaceOf, onControlPlane } from '../control-plane-stage.ts';
import { type Injection, type InstalledWebhook, installInjector, installWebhook } from './installed-stage.ts';
import {
  type CreatedPod,
  cpusOf,
  devicesOf,
  localnet,
  reportingNode,
  type Scene,
  sceneOf,
  type VmiOptions,
} from './objects-fixture.ts';

const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
const DRY = { dryRun: 'All' };

describe('the webhook behind a real API server: launchers', function () {
  onControlPlane(this);
  let installed: InstalledWebhook;
  let scene: Scene;
  before(async () => {
    installed = await installWebhook();
    scene = sceneOf(installed.client);
    const { plane } = installed;
    const namespaces = ['tenant', 'other', 'telco-east'];
    await plane.create(...namespaces.map(namespaceOf));
    await plane.create(localnet('tenant', 'east'));
    await reportingNode(plane, 'worker', { east: '0' });
    await until('the report and the network to be seen', async () => {
      const vmi = { annotations: ANNOTATED, networks: { a: 'east' } };
      return devicesOf(await scene.launcher('probe', { cpu: '9', vmi })).length > 0;
    });
  });
  after(() => installed?.stop());

  const cases: [what: string, cpu: string, becomes: string, vmi: VmiOptions][] = [
    ['4 cores x 2 threads', '9', '10', { annotations: ANNOTATED }],
    [
      'even parity alone opts in: 2 vCPUs and a pool of 1',
      '5',
      '6',
      { cpu: { cores: 2 }, ioThreads: 1, annotations: { [EVEN_PARITY_ANNOTATION]: '' } },
    ],
    ['no annotation', '9', '9', {}],
  ];
  for (const [index, [what, cpu, becomes, vmi]] of cases.entries()) {
    it(`${what}: ${cpu} to ${becomes}`, async () => {
      const pod = await scene.launcher(`form-${index}`, { cpu, vmi });
      const { requests, limits } = pod.spec.containers[0]!.resources;
      assert.deepEqual([requests['cpu'], limits['cpu']], [becomes, becomes]);
      assert.equal(pod.status.qosClass, 'Guaranteed');
    });
  }

  it('changes nothing else of the pod that KubeVirt rendered, and nothing on its own result', async () => {
    const vmi = await scene.vmi('dpdk-fwd-01', { namespace: 'telco-east', annotations: ANNOTATED });
    const strip = ({ spec, metadata: { annotations = {} } }: CreatedPod) => {
      const { 'plumbline.dev/decision': _, [FULL_PCPUS_ANNOTATION]: __, ...others } = annotations;
      return { spec: JSON.parse(JSON.stringify(spec).replaceAll('"cpu":"10"', '"cpu":"9"')), annotations: others };
    };
    for (const name of ['virt-launcher-pod', 'virt-launcher-pod.migration-target']) {
      const pod = vector<{ metadata: Record<string, unknown>; spec: Record<string, unknown> }>(
        `${name}.admission.json`,
      );
      const { annotations } = pod.metadata as { annotations: Record<string, string> };
      (pod.metadata['ownerReferences'] as { uid: string }[])[0]!.uid = vmi.metadata.uid;
      const namespaced = { ...pod, metadata: { ...pod.metadata, namespace: 'telco-east' } };
      const padded = await scene.admit(namespaced, DRY);
      assert.equal(cpusOf(padded)[0], '10');
      const { [FULL_PCPUS_ANNOTATION]: value, ...plain } = annotations;
      assert.equal(value, FULL_PCPUS_ONLY);
      const left = await scene.admit({ ...pod, metadata: { ...namespaced.metadata, annotations: plain } }, DRY);
      assert.equal(cpusOf(left)[0], '9');
      assert.deepEqual(strip(padded), strip(left));
      const { uid, creationTimestamp, managedFields, ...metadata } = padded.metadata as unknown as Record<
        string,
        unknown
      >;
      const again = await scene.admit({ ...padded, metadata } as never, DRY);
      assert.deepEqual([again.spec, again.metadata.annotations], [padded.spec, padded.metadata.annotations]);
    }
  });

  it('W11: a launcher that is padded cannot be resized', async () => {
    const { metadata } = await scene.launcher('resized', { cpu: '9', vmi: { annotations: ANNOTATED } });
    const operations = ['requests', 'limits'].map((side) => ({
      op: 'replace',
      path: `/spec/containers/0/resources/${side}/cpu`,
      value: '12',
    }));
    const path = `/api/v1/namespaces/tenant/pods/${metadata.name}/resize`;
    const resize = installed.client.patch(path, 'application/json-patch+json', operations);
    await assert.rejects(resize, /cannot be resized in place/);
  });

  it('W13: a definition of another namespace is as absent as one that does not exist', async () => {
    await installed.plane.create(localnet('other', 'secret', 'east'), localnet('default', 'shared', 'east'));
    const attached = (network: string) =>
      scene.launcher('foreign', { cpu: '9', annotations: { 'k8s.v1.cni.cncf.io/networks': network } });
    const answerFor = async (network: string) => {
      const pod = await attached(network);
      const decision = pod.metadata.annotations?.['plumbline.dev/decision'] ?? '';
      assert.match(decision, new RegExp(`there is no NetworkAttachmentDefinition ${network} that its namespace may`));
      return [devicesOf(pod), decision.replaceAll(network, 'NETWORK')];
    };
    assert.deepEqual(devicesOf(await attached('default/shared')), ['east']);
    assert.deepEqual(await answerFor('other/secret'), await answerFor('other/absent'));
  });

  describe('W8: other mutating webhooks', () => {
    /** As the network resources injector does: into the first container, whichever it is. */
    const networkResources: Injection = () =>
      ['requests', 'limits'].map((side) => ({
        op: 'add',
        path: `/spec/containers/0/resources/${side}/intel.com~1vf`,
        value: '1',
      }));
    const small = { cpu: '100m', memory: '80M' };
    const VIRTIOFS = { name: 'virtiofs-data', image: 'none', resources: { requests: small, limits: small } };
    const virtiofs: Injection = ({ spec }) =>
      spec.containers.some(({ name }) => name === 'virtiofs-data')
        ? []
        : [{ op: 'add', path: '/spec/containers/-', value: VIRTIOFS }];
    const vmi = { annotations: ANNOTATED, networks: { a: 'east' } };

    // Plumbline's configuration is plumbline-webhook: names before it, around it and after it.
    const orders: [string, string][] = [
      ['aa-resources', 'bb-virtiofs'],
      ['zz-resources', 'aa-virtiofs'],
      ['yy-resources', 'zz-virtiofs'],
    ];
    for (const [resources, appender] of orders) {
      it(`${[resources, appender, 'plumbline-webhook'].sort().join(', ')}: the same pod, Guaranteed`, async () => {
        const removals = [
          await installInjector(installed.plane, resources, networkResources),
          await installInjector(installed.plane, appender, virtiofs),
        ];
        await until('both to be called, and the pod to be right', async () => {
          const pod = await scene.launcher('among', { cpu: '9', labels: { injected: 'true' }, vmi });
          const [compute, ...others] = pod.spec.containers;
          if (others.length === 0 || compute?.resources.limits['intel.com/vf'] === undefined) return false;
          assert.deepEqual(cpusOf(pod), ['10', '100m']);
          assert.deepEqual(devicesOf(pod), ['east']);
          assert.equal(pod.status.qosClass, 'Guaranteed');
          return true;
        });
        for (const remove of removals) await remove();
      });
    }
  });
});
