import assert from 'node:assert/strict';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, THREADS_PER_CORE_LABEL } from '../../../model/names.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { vector } from '../../support/vectors.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';
import { type CreatedPod, type LauncherOptions, launcherFor, nodeWith, type VmiOptions } from './objects.ts';
import { cpusOf, type Scene, sceneOf } from './stage.ts';

const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
const DRY = { dryRun: 'All' };
const TOLERATES_ALL = [{ operator: 'Exists' }];
/** The API server adds this taint to new nodes. */
const NOT_READY = [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }];

describe('the webhook behind a real API server: launchers', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  let scene: Scene;
  before(async () => {
    installed = await installWebhook();
    scene = sceneOf(installed);
    const { plane } = installed;
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } });
    for (const threads of [2, 4]) await nodeWith(plane, `smt${threads}`, { threads, labels: { smt: `${threads}` } });
    for (const [threads, unschedulable] of [
      [2, false],
      [8, true],
    ] as const) {
      const labels = { pool: 'cordon', [THREADS_PER_CORE_LABEL]: `${threads}` };
      await nodeWith(plane, `cordon-${threads}`, { threads, labels, unschedulable });
    }
    await until('the cordoned node, the last one, to be seen', async () => {
      const vmi = await scene.vmi('probe', { annotations: ANNOTATED });
      const spec = { nodeSelector: { pool: 'cordon' }, tolerations: TOLERATES_ALL };
      return cpusOf(await scene.admit(launcherFor(vmi, { cpu: '9', spec }), DRY))[0] === '16';
    });
  });
  after(() => installed?.stop());

  const smt = (threads: number) => ({ spec: { nodeSelector: { smt: `${threads}` } } });
  const cases: [what: string, becomes: string, options: LauncherOptions, vmi?: VmiOptions][] = [
    ['4 cores x 2 threads', '10', { cpu: '9', ...smt(2) }],
    ['SMT4', '12', { cpu: '9', ...smt(4) }],
    [
      'even parity alone opts in: 2 vCPUs and a pool of 1',
      '6',
      { cpu: '5', ...smt(2) },
      { cpu: { cores: 2 }, ioThreads: 1, annotations: { [EVEN_PARITY_ANNOTATION]: '' } },
    ],
    [
      'a cordoned SMT8 node among those of SMT2',
      '10',
      { cpu: '9', spec: { nodeSelector: { pool: 'cordon' }, tolerations: NOT_READY } },
    ],
    ['no annotation', '9', { cpu: '9', ...smt(2) }, { annotations: {} }],
  ];
  for (const [index, [what, becomes, options, vmi]] of cases.entries()) {
    it(`${what}: ${options.cpu} to ${becomes}`, async () => {
      const pod = await scene.launcher(`form-${index}`, { ...options, vmi: { annotations: ANNOTATED, ...vmi } });
      const { requests, limits } = pod.spec.containers[0]!.resources;
      assert.deepEqual([requests['cpu'], limits['cpu']], [becomes, becomes]);
      assert.equal(pod.status.qosClass, 'Guaranteed');
      const decision = pod.metadata.annotations?.['plumbline.dev/decision'] ?? '{}';
      assert.equal(decision.includes('"cpus"'), becomes !== options.cpu, decision);
    });
  }

  it('changes nothing else of the pod that KubeVirt rendered, and nothing on its own result', async () => {
    const { client } = installed.plane;
    await client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'telco-east' },
    });
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

  it('W10: a quota of the CPUs before padding denies with both numbers', async () => {
    const { plane } = installed;
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'quota' } });
    const path = '/api/v1/namespaces/quota/resourcequotas';
    const hard = { 'limits.cpu': '9' };
    await plane.client.create(path, {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'cpus' },
      spec: { hard },
    });
    const status = { hard, used: { 'limits.cpu': '0' } };
    await plane.client.patch(`${path}/cpus/status`, 'application/merge-patch+json', { status });
    await assert.rejects(
      scene.launcher('big', { cpu: '9', vmi: { namespace: 'quota', annotations: ANNOTATED }, ...smt(2) }),
      /exceeded quota: cpus, requested: limits\.cpu=10\d*m?, used: .*, limited: limits\.cpu=9/,
    );
  });

  it('W11: a launcher that is padded cannot be resized', async () => {
    const { metadata } = await scene.launcher('resized', { cpu: '9', vmi: { annotations: ANNOTATED }, ...smt(2) });
    const operations = ['requests', 'limits'].map((side) => ({
      op: 'replace',
      path: `/spec/containers/0/resources/${side}/cpu`,
      value: '12',
    }));
    await assert.rejects(
      installed.plane.client.patch(
        `/api/v1/namespaces/tenant/pods/${metadata.name}/resize`,
        'application/json-patch+json',
        operations,
      ),
      /cannot be resized in place/,
    );
  });
});
