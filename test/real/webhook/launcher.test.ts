import assert from 'node:assert/strict';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, THREADS_PER_CORE_LABEL } from '../../../model/names.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { vector } from '../../support/vectors.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';
import { type CreatedPod, type LauncherOptions, launcherFor, nodeWith, sidecar, type VmiOptions } from './objects.ts';
import { announcedOf, cpusOf, type Scene, sceneOf } from './stage.ts';
import { stallingServer } from './stalling.ts';

const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
const PARITY = { [EVEN_PARITY_ANNOTATION]: '' };
const DRY = { dryRun: 'All' };
/** The API server adds this taint to new nodes. */
const NOT_READY = [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }];
const NOT_SMT8 = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values: ['8'] }] }],
    },
  },
};

describe('the webhook behind a real API server: launchers', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  let scene: Scene;
  before(async () => {
    const server = (plane: InstalledWebhook['plane']) =>
      stallingServer(plane, /^GET .*\/virtualmachineinstances\/[^?]+/);
    installed = await installWebhook({
      variants: {
        off: { args: ['--full-pcpus-only', 'false'] },
        always: { args: ['--alignment', 'always'] },
        auto: { args: ['--alignment', 'auto'] },
        stalled: { server },
      },
    });
    scene = sceneOf(installed);
    const { plane } = installed;
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } });
    for (const threads of [1, 2, 4, 8])
      await nodeWith(plane, `smt${threads}`, { threads, labels: { smt: `${threads}` } });
    const pooled = (pool: string, threads: number) => ({
      threads,
      labels: { pool, [THREADS_PER_CORE_LABEL]: `${threads}` },
    });
    for (const pool of ['plain', 'cordon']) await nodeWith(plane, `${pool}-2`, pooled(pool, 2));
    await nodeWith(plane, 'plain-8', { ...pooled('plain', 8), fullPcpusOnly: false });
    await nodeWith(plane, 'cordon-8', { ...pooled('cordon', 8), unschedulable: true });
    for (const namespace of ['tenant', 'always', 'auto']) {
      await until('the cordoned node to be seen', async () => {
        const vmi = await scene.vmi('probe', { namespace, annotations: ANNOTATED });
        const spec = { nodeSelector: { pool: 'cordon' }, tolerations: [{ operator: 'Exists' }] };
        return cpusOf(await scene.admit(launcherFor(vmi, { cpu: '9', spec }), DRY))[0] === '16';
      });
      await until('the reports to be seen', async () => {
        const vmi = await scene.vmi('probe', { namespace, annotations: ANNOTATED });
        const pod = launcherFor(vmi, { cpu: '9', spec: { nodeSelector: { smt: '8' } } });
        return cpusOf(await scene.admit(pod, DRY))[0] === '16';
      });
    }
  });
  after(() => installed?.stop());

  describe('W1 to W5, W11: every form', () => {
    const parity = { ...ANNOTATED, ...PARITY };
    const smt = (threads: number) => ({ spec: { nodeSelector: { smt: `${threads}` } } });
    const cases: (Partial<LauncherOptions> & {
      what: string;
      cpu: string;
      becomes: string;
      vmi?: VmiOptions;
      /** It requests no whole cores, or cannot have any. */
      isLeft?: true;
    })[] = [
      { what: '4 cores x 2 threads', cpu: '9', becomes: '10', ...smt(2) },
      { what: '3 vCPUs', vmi: { cpu: { cores: 3 } }, cpu: '4', becomes: '4', ...smt(2) },
      { what: 'SMT4', cpu: '9', becomes: '12', ...smt(4) },
      { what: 'SMT8', cpu: '9', becomes: '16', ...smt(8) },
      { what: 'SMT off, annotated: at least an even number', cpu: '9', becomes: '10', ...smt(1) },
      { what: 'nodes of all kinds', cpu: '9', becomes: '16' },
      {
        what: 'even parity, 6 already',
        vmi: { cpu: { cores: 4 }, annotations: parity },
        cpu: '6',
        becomes: '6',
        ...smt(2),
      },
      {
        what: 'even parity, 1 vCPU and a pool of 1',
        vmi: { cpu: { cores: 1 }, ioThreads: 1, annotations: parity },
        cpu: '3',
        becomes: '4',
        ...smt(2),
      },
      {
        what: 'even parity, 2 vCPUs and a pool of 1',
        vmi: { cpu: { cores: 2 }, ioThreads: 1, annotations: parity },
        cpu: '5',
        becomes: '6',
        ...smt(2),
      },
      {
        what: 'even parity alone opts in: 2 vCPUs and a pool of 1',
        vmi: { cpu: { cores: 2 }, ioThreads: 1, annotations: PARITY },
        cpu: '5',
        becomes: '6',
        ...smt(2),
      },
      {
        what: 'even parity alone, SMT4',
        vmi: { cpu: { cores: 4 }, annotations: PARITY },
        cpu: '6',
        becomes: '8',
        ...smt(4),
      },
      {
        what: 'a plain SMT8 node among those of SMT2',
        cpu: '9',
        becomes: '10',
        spec: { nodeSelector: { pool: 'plain' } },
      },
      {
        what: 'a cordoned SMT8 node among those of SMT2',
        cpu: '9',
        becomes: '10',
        spec: { nodeSelector: { pool: 'cordon' }, tolerations: NOT_READY },
      },
      {
        what: 'the same node for a pod that tolerates the cordon',
        cpu: '9',
        becomes: '16',
        spec: { nodeSelector: { pool: 'cordon' }, tolerations: [{ operator: 'Exists' }] },
      },
      {
        what: 'a user who avoids SMT8',
        cpu: '9',
        becomes: '10',
        spec: { nodeSelector: { pool: 'cordon' }, tolerations: [{ operator: 'Exists' }], affinity: NOT_SMT8 },
      },
      { what: 'supplemental pool', vmi: { ioThreads: 2 }, cpu: '11', becomes: '12', ...smt(2) },
      { what: 'migration target', labels: { 'kubevirt.io/migrationJobUID': 'm' }, cpu: '9', becomes: '10', ...smt(2) },
      {
        what: 'ephemeral provisioning',
        annotations: { 'kubevirt.io/ephemeral-provisioning': 'true' },
        cpu: '9',
        becomes: '10',
        ...smt(2),
      },
      {
        what: 'hot-plug pod',
        labels: { 'kubevirt.io': 'hotplug-disk' },
        cpu: '9',
        becomes: '9',
        isLeft: true,
        ...smt(2),
      },
      { what: '9000m', cpu: '9000m', becomes: '10', ...smt(2) },
      { what: '9e0', cpu: '9e0', becomes: '10', ...smt(2) },
      { what: 'a fraction', cpu: '9500m', becomes: '9500m', isLeft: true, ...smt(2) },
      { what: 'no annotation', vmi: { annotations: {} }, cpu: '9', becomes: '9', isLeft: true, ...smt(2) },
    ];
    for (const [index, { what, becomes, isLeft = false, vmi = {}, ...options }] of cases.entries()) {
      it(`${what}: ${options.cpu} to ${becomes}`, async () => {
        const pod = await scene.launcher(`form-${index}`, { ...options, vmi: { annotations: ANNOTATED, ...vmi } });
        const { requests, limits } = pod.spec.containers[0]!.resources;
        assert.deepEqual([requests['cpu'], limits['cpu']], [becomes, becomes]);
        assert.equal(pod.status.qosClass, 'Guaranteed');
        const decision = pod.metadata.annotations?.['plumbline.dev/decision'] ?? '{}';
        assert.equal(decision.includes('"cpus"'), !isLeft, decision);
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
        const { [FULL_PCPUS_ANNOTATION]: asked, ...plain } = annotations;
        assert.equal(asked, FULL_PCPUS_ONLY);
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

    it('CPU hot-plug: a migration target is padded for the vCPUs that were just plugged in', async () => {
      const { client } = installed.plane;
      const vmi = await scene.vmi('plugged', { cpu: { sockets: 2, cores: 4 }, annotations: ANNOTATED });
      const path = '/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances/plugged';
      for (const sockets of [3, 4, 5]) {
        await client.patch(path, 'application/merge-patch+json', { spec: { domain: { cpu: { sockets } } } });
        const target = launcherFor(vmi, {
          cpu: `${sockets * 4 + 1}`,
          labels: { 'kubevirt.io/migrationJobUID': `${sockets}` },
          spec: { nodeSelector: { smt: '2' } },
        });
        const pod = await scene.admit(target);
        assert.deepEqual(cpusOf(pod), [`${sockets * 4 + 2}`]);
        assert.match(pod.metadata.annotations?.['plumbline.dev/decision'] ?? '', /"padding":1/);
      }
    });
  });

  describe('W6, W7: the VMI', () => {
    it('has the changes in its launcher’s decision', async () => {
      const vmi = await scene.vmi('notified', { annotations: ANNOTATED });
      const pod = await scene.admit(launcherFor(vmi, { cpu: '9', spec: { nodeSelector: { smt: '2' } } }));
      assert.match(announcedOf(pod).join('\n'), /^Normal PaddedToWholeCores: .* from 9 to 10/);
    });

    it('leaves the launcher unchanged if it was deleted or created again', async () => {
      const vmi = await scene.vmi('gone', { annotations: ANNOTATED });
      const path = '/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances/gone';
      await installed.plane.client.delete(path);
      // Until the watch delivers it, the copy is used, and the final check may refuse the result of the copy.
      const leftAlone = async () => cpusOf(await scene.admit(launcherFor(vmi, { cpu: '9' }), DRY))[0] === '9';
      await until('the deletion to be seen', () => leftAlone().catch(() => false));
      assert.deepEqual(cpusOf(await scene.admit(launcherFor(vmi, { cpu: '9' }))), ['9']);
      await scene.vmi('gone', { annotations: ANNOTATED });
      assert.deepEqual(cpusOf(await scene.admit(launcherFor(vmi, { cpu: '9' }))), ['9']);
    });

    it('refuses its launcher with the next step if it cannot be read in time; others start', async () => {
      const vmi = await scene.vmi('unread', { namespace: 'stalled', annotations: ANNOTATED });
      const stranger = { ...vmi, metadata: { ...vmi.metadata, uid: '00000000-0000-4000-8000-000000000001' } };
      await assert.rejects(
        scene.admit(launcherFor(stranger, { cpu: '9' })),
        /VirtualMachineInstance stalled\/unread could not be read \(.*\); try again/,
      );
      const plain = launcherFor({ ...stranger, metadata: { ...stranger.metadata, annotations: {} } }, { cpu: '9' });
      assert.deepEqual(cpusOf(await scene.admit(plain)), ['9']);
    });

    it('is found by the owner reference of the launcher, for any name and host name', async () => {
      const name = `${'a-very-long.name-'.repeat(12)}x`;
      const pod = await scene.launcher(name, {
        vmi: { annotations: ANNOTATED },
        cpu: '9',
        labels: { 'vm.kubevirt.io/name': 'custom-host' },
        spec: { hostname: 'custom-host', nodeSelector: { smt: '2' } },
      });
      assert.deepEqual(cpusOf(pod), ['10']);
    });
  });

  it('W9: an integral sidecar causes a warning, and stays unchanged', async () => {
    const vmi = await scene.vmi('integral', { annotations: ANNOTATED });
    const amounts = { cpu: '1', memory: '1Mi' };
    const pod = launcherFor(vmi, { cpu: '9', sidecars: [sidecar('hook-sidecar-0', amounts)] });
    const admitted = await scene.admit({ ...pod, spec: { ...pod.spec, nodeSelector: { smt: '2' } } } as never);
    assert.deepEqual(cpusOf(admitted), ['10', '1']);
    const says = /Warning .*container hook-sidecar-0 asks for 1 exclusive CPU,.*full-pcpus-only nodes reject the pod/;
    assert.match(announcedOf(admitted).join('\n'), says);
  });

  describe('W10: limits of a namespace', () => {
    const refused = async (namespace: string, says: RegExp) => {
      const vmi = await scene.vmi('big', { namespace, annotations: ANNOTATED });
      await assert.rejects(scene.admit(launcherFor(vmi, { cpu: '9', spec: { nodeSelector: { smt: '2' } } })), says);
    };
    const namespace = async (name: string) =>
      installed.plane.client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

    it('a quota of the CPUs before padding denies with both numbers', async () => {
      await namespace('quota');
      const { client } = installed.plane;
      const path = '/api/v1/namespaces/quota/resourcequotas';
      const hard = { 'limits.cpu': '9' };
      await client.create(path, {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'cpus' },
        spec: { hard },
      });
      const status = { hard, used: { 'limits.cpu': '0' } };
      await client.patch(`${path}/cpus/status`, 'application/merge-patch+json', { status });
      await refused('quota', /exceeded quota: cpus, requested: limits\.cpu=10\d*m?, used: .*, limited: limits\.cpu=9/);
    });

    it('a limit range does the same', async () => {
      await namespace('range');
      const limits = [{ type: 'Container', max: { cpu: '9' } }];
      const range = { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'cpus' }, spec: { limits } };
      await installed.plane.client.create('/api/v1/namespaces/range/limitranges', range);
      await refused('range', /maximum cpu usage per Container is 9, but limit is 10/);
    });
  });

  describe('W11: loss of exclusive CPUs', () => {
    it('a sidecar is named in the refusal of the launcher, and pod-level resources have the next step', async () => {
      const vmi = await scene.vmi('sidecar', { annotations: ANNOTATED });
      const burstable = sidecar('mesh', { cpu: '100m', memory: '1Mi' }, {});
      await assert.rejects(
        scene.admit(launcherFor(vmi, { cpu: '9', sidecars: [burstable] })),
        /container mesh prevents exclusive CPUs for the launcher pod: it has no cpu limit/,
      );
      const amounts = { cpu: '12', memory: '4Gi' };
      const spec = { resources: { requests: amounts, limits: amounts } };
      await assert.rejects(scene.admit(launcherFor(vmi, { cpu: '9', spec })), /Remove spec\.resources/);
    });

    for (const [what, cpu, cores] of [
      ['padded', '9', 8],
      ['already whole', '10', 9],
    ] as const) {
      it(`a launcher that is ${what} cannot be resized`, async () => {
        const options = { cpu, vmi: { cpu: { cores }, annotations: ANNOTATED }, spec: { nodeSelector: { smt: '2' } } };
        const { metadata } = await scene.launcher(`resized-${cpu}`, options);
        const operations = ['requests', 'limits'].map((side) => ({
          op: 'replace',
          path: `/spec/containers/0/resources/${side}/cpu`,
          value: '12',
        }));
        const path = `/api/v1/namespaces/tenant/pods/${metadata.name}/resize`;
        await assert.rejects(
          installed.plane.client.patch(path, 'application/json-patch+json', operations),
          /cannot be resized in place/,
        );
      });
    }
  });

  describe('W12: the cluster’s policy', () => {
    const cases: { namespace: string; annotations: Record<string, string>; threads: number; becomes: string }[] = [
      { namespace: 'off', annotations: ANNOTATED, threads: 2, becomes: '9' },
      { namespace: 'always', annotations: {}, threads: 1, becomes: '10' },
      { namespace: 'always', annotations: {}, threads: 4, becomes: '12' },
      { namespace: 'auto', annotations: {}, threads: 1, becomes: '9' },
      { namespace: 'auto', annotations: ANNOTATED, threads: 1, becomes: '9' },
      { namespace: 'auto', annotations: {}, threads: 4, becomes: '12' },
    ];
    for (const { namespace, annotations, threads, becomes } of cases) {
      const asked = annotations === ANNOTATED ? 'annotated' : 'not annotated';
      it(`${namespace}, ${asked}, SMT${threads}: 9 to ${becomes}`, async () => {
        const spec = { nodeSelector: { smt: `${threads}` } };
        const vmi = { namespace, annotations };
        assert.deepEqual(cpusOf(await scene.launcher(`p-${asked.replace(' ', '-')}`, { vmi, cpu: '9', spec })), [
          becomes,
        ]);
      });
    }

    it('auto takes the largest of mixed candidates, with a note', async () => {
      const vmi = await scene.vmi('mixed', { namespace: 'auto' });
      const values = ['1', '2', '4'];
      const requiredDuringSchedulingIgnoredDuringExecution = {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'smt', operator: 'In', values }] }],
      };
      const spec = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } } };
      const pod = await scene.admit(launcherFor(vmi, { cpu: '9', spec }));
      assert.deepEqual(cpusOf(pod), ['12']);
      // SMT8 nodes would reject 12 CPUs: kube-scheduler itself excludes them.
      assert.match(JSON.stringify(pod.spec), /threads-per-core","operator":"NotIn","values":\["8"\]/);
      assert.match(announcedOf(pod).join('\n'), /Normal MixedCandidates: .*1 and 2 and 4 threads per core/);
    });

    it('the gate being off causes a warning if the annotation has no effect', async () => {
      const pod = await scene.launcher('gate-off', { vmi: { namespace: 'off', annotations: ANNOTATED }, cpu: '9' });
      assert.match(announcedOf(pod).join('\n'), /Warning .*feature gate FullPCPUsOnly is off/);
    });
  });
});
