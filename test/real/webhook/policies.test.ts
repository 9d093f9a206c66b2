import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { root } from '../../support/bundles.ts';
import { deniedByPolicy, deniedByWebhook } from '../../support/denied.ts';
import { needs, pathOf } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { type Injection, installInjector } from './injector.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';
import { type CreatedPod, localnet, nodeWith } from './objects.ts';
import { cpusOf } from './stage.ts';

const ALIGN = { 'plumbline.dev/align': 'whole-cores' };
const DRY = { dryRun: 'All' };

interface PodOptions {
  readonly annotations?: Record<string, string>;
  readonly cpus?: readonly string[];
  readonly more?: Record<string, string>;
  readonly labels?: Record<string, string>;
}

function ordinaryPod({ annotations = {}, cpus = ['3'], more = {}, labels = {} }: PodOptions = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'app-', annotations, labels },
    spec: {
      containers: cpus.map((cpu, index) => ({
        name: `c${index}`,
        image: 'none',
        resources: { limits: { cpu, memory: '1Gi', ...more } },
      })),
    },
  };
}

describe('the webhook behind a real API server: policies, ordinary pods and VMs', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  before(async () => {
    installed = await installWebhook();
    const { plane } = installed;
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } });
    await nodeWith(plane, 'smt2', { threads: 2, labels: { smt: '2' }, physnets: { east: '0', west: '1' } });
    await nodeWith(plane, 'smt4', { threads: 4, labels: { smt: '4' } });
    await plane.create(localnet('tenant', 'east'), localnet('tenant', 'west'));
    await until(
      'the reports to be seen',
      async () => cpusOf(await create(ordinaryPod({ annotations: ALIGN }), DRY))[0] === '4',
    );
  });
  after(() => installed?.stop());

  const create = async (pod: object, query: Record<string, string> = {}) =>
    (await installed.plane.client.create('/api/v1/namespaces/tenant/pods', pod, { query })) as CreatedPod;
  /**
   * Applies as a user would; warnings of the API server are on standard error. The webhook runs in this process, so it
   * must not be blocked.
   */
  const apply = (object: object, ...args: string[]) =>
    new Promise<{ stderr: string; status: number | null }>((resolve) => {
      const flags = ['--kubeconfig', installed.plane.adminKubeconfig, 'apply', '--validate=false', '-f', '-', ...args];
      const child = spawn(pathOf('kubectl'), flags, { stdio: ['pipe', 'ignore', 'pipe'] });
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      child.on('close', (status) => resolve({ stderr, status }));
      child.stdin.end(stringify(object));
    });

  describe('ordinary pods', () => {
    it('are rounded in every container with whole CPUs, and placed by the extender', async () => {
      const pod = await create(ordinaryPod({ annotations: ALIGN, cpus: ['3', '500m', '8'] }), DRY);
      assert.deepEqual(cpusOf(pod), ['4', '500m', '8']);
      assert.equal(pod.spec.containers[0]?.resources.limits['plumbline.dev/placed'], '1');
      assert.equal(pod.spec.containers[2]?.resources.limits['plumbline.dev/placed'], undefined);
    });

    it('use the threads per core of the nodes that they may go to', async () => {
      const pod = ordinaryPod({ annotations: ALIGN });
      const onSmt2 = await create({ ...pod, spec: { ...pod.spec, nodeSelector: { smt: '2' } } }, DRY);
      assert.deepEqual(cpusOf(onSmt2), ['4']);
      const nine = ordinaryPod({ annotations: ALIGN, cpus: ['9'] });
      const requiredDuringSchedulingIgnoredDuringExecution = {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'smt', operator: 'In', values: ['4'] }] }],
      };
      const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } };
      assert.deepEqual(cpusOf(await create({ ...nine, spec: { ...nine.spec, affinity } }, DRY)), ['12']);
    });

    it('keep their CPUs in a resize', async () => {
      const { metadata } = await create(ordinaryPod({ annotations: ALIGN }));
      const path = `/api/v1/namespaces/tenant/pods/${metadata.name}/resize`;
      const cpus = ['requests', 'limits'].map((side) => ({
        op: 'replace',
        path: `/spec/containers/0/resources/${side}/cpu`,
        value: '6',
      }));
      await assert.rejects(
        installed.plane.client.patch(path, 'application/json-patch+json', cpus),
        /cannot be resized in place/,
      );
    });

    it('stay unchanged without the annotation', async () => {
      assert.deepEqual(cpusOf(await create(ordinaryPod(), DRY)), ['3']);
    });
  });

  describe('reserved names', () => {
    for (const [what, options] of [
      ['a physnet', { more: { 'physnet.plumbline.dev/east': '1' } }],
      ['the tunnel', { more: { 'plumbline.dev/tunnel': '1' } }],
      ['the placed resource', { more: { 'plumbline.dev/placed': '1' } }],
      ['a decision', { annotations: { 'plumbline.dev/decision': '{"cpus":{"c0":3}}' } }],
      ['a placement', { annotations: { 'plumbline.dev/placement': '{}' } }],
    ] as const) {
      it(`are refused in a pod with ${what}`, async () => {
        await assert.rejects(create(ordinaryPod(options), DRY), deniedByPolicy('plumbline-reserved-names'));
      });
    }

    it('are refused in a forged launcher, and in an ordinary pod beyond its decision', async () => {
      const forged = ordinaryPod({ labels: { 'kubevirt.io': 'virt-launcher' }, more: { 'plumbline.dev/tunnel': '1' } });
      await assert.rejects(create(forged, DRY), deniedByWebhook('launcher.plumbline.dev'));
      const greedy = ordinaryPod({ annotations: ALIGN, more: { 'physnet.plumbline.dev/east': '1' } });
      await assert.rejects(create(greedy, DRY), deniedByWebhook('opt-in.plumbline.dev'));
    });

    it('protect the decision from changes, but nothing else', async () => {
      const { metadata } = await create(ordinaryPod({ annotations: ALIGN }));
      const path = `/api/v1/namespaces/tenant/pods/${metadata.name}`;
      const patch = (annotations: Record<string, string | null>) =>
        installed.plane.client.patch(path, 'application/merge-patch+json', { metadata: { annotations } });
      await patch({ note: 'mine' });
      await assert.rejects(patch({ 'plumbline.dev/decision': '{}' }), /cannot be added, changed or removed/);
      await assert.rejects(patch({ 'plumbline.dev/decision': null }), /cannot be added, changed or removed/);
    });
  });

  describe('later webhooks', () => {
    const injected = ordinaryPod({ annotations: ALIGN, labels: { injected: 'true' } });
    const cpu = { op: 'replace', path: '/spec/containers/0/resources/limits/cpu', value: '3' };
    const sidecar = { name: 'mesh', image: 'none', resources: { requests: { cpu: '100m', memory: '1Mi' } } };
    const changed: Injection = () => [cpu, { ...cpu, path: '/spec/containers/0/resources/requests/cpu' }];
    const added: Injection = () => [{ op: 'add', path: '/spec/containers/-', value: sidecar }];
    const whileInjecting = async (inject: Injection, holds: () => Promise<unknown>) => {
      const remove = await installInjector(installed.plane, 'zz-injector', inject);
      try {
        await until('the injector to be called', async () => {
          const pod = { ...ordinaryPod({ labels: { injected: 'true' }, cpus: ['5'] }) };
          const { spec } = await create(pod, DRY);
          return spec.containers.length > 1 || spec.containers[0]?.resources.limits['cpu'] === '3';
        });
        await holds();
      } finally {
        await remove();
      }
    };

    it('are refused by the webhook if they undo its changes', () =>
      whileInjecting(changed, () =>
        assert.rejects(create(injected, DRY), /another webhook changed .*cpu should be "4"|no longer has the CPUs/),
      ));

    it('are refused with the container’s name if they add one that prevents Guaranteed', () =>
      whileInjecting(added, () =>
        assert.rejects(create(injected, DRY), /container mesh prevents exclusive CPUs for the pod/),
      ));

    it('are refused by the policies alone in the same cases', async () => {
      const { client } = installed.plane;
      const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
      const configuration = (await client.get(`${path}/plumbline-webhook`)) as { metadata: Record<string, unknown> };
      await client.delete(`${path}/plumbline-webhook`);
      await whileInjecting(changed, () =>
        until('the policy alone to refuse', () =>
          create(injected, DRY).then(
            () => false,
            ({ message }: Error) => /container c0 no longer has the CPUs that Plumbline set/.test(message),
          ),
        ),
      );
      delete configuration.metadata['resourceVersion'];
      delete configuration.metadata['uid'];
      await client.create(path, configuration);
    });
  });

  describe('CPU masks', () => {
    const masked = (name: string, mask: string, cores = 2) => ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'tenant' },
      spec: {
        template: {
          metadata: { annotations: { 'plumbline.dev/cpu-mask': mask } },
          spec: { domain: { cpu: { cores } } },
        },
      },
    });
    const asUser = ['--as', 'another', '--as-group', 'system:authenticated'];

    it('need a permission in the namespace', async () => {
      await installed.plane.create(
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: 'vm-user' },
          rules: [{ apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['*'] }],
        },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata: { name: 'vms', namespace: 'tenant' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'vm-user' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'another' }],
        },
      );
      const refused = await apply(masked('pinned', '0-1'), ...asUser);
      assert.match(refused.stderr, /user another may not use CPU masks in namespace tenant/);
      await installed.plane.create({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'masks', namespace: 'tenant' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'plumbline-cpu-mask-user' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'another' }],
      });
      const allowed = await apply(masked('pinned', '0-1'), ...asUser);
      assert.equal(allowed.status, 0, allowed.stderr);
    });

    it('are checked against the vCPUs when either changes', async () => {
      assert.match((await apply(masked('three', '0:1:2'))).stderr, /entries for 3 vCPUs, but the VM has 2/);
      assert.equal((await apply(masked('two', '0:1'))).status, 0);
      assert.match((await apply(masked('two', '0:1', 4))).stderr, /entries for 2 vCPUs, but the VM has 4/);
      assert.equal((await apply(masked('two', '0:1:2:3', 4))).status, 0);
    });
  });

  describe('VMs', () => {
    const networks = [
      { name: 'a', multus: { networkName: 'east' } },
      { name: 'b', multus: { networkName: 'west' } },
    ];
    const vm = (name: string, spec: object, annotations: Record<string, string> = {}) => ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'tenant' },
      spec: { template: { metadata: { annotations }, spec } },
    });
    const dedicated = { cpu: { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true } };

    it('get a warning for required physnets without a common NUMA node', async () => {
      const { stderr, status } = await apply(vm('apart', { domain: dedicated, networks }));
      assert.equal(status, 0);
      assert.match(
        stderr,
        /Warning: the required networks have no common NUMA node .*a \(physnet east\), b \(physnet west\)/,
      );
    });

    it('get a warning for a hotplugged NIC, but not again for other changes', async () => {
      assert.equal((await apply(vm('plug', { domain: dedicated, networks: networks.slice(0, 1) }))).status, 0);
      const { stderr } = await apply(vm('plug', { domain: dedicated, networks }));
      assert.match(stderr, /Warning: interface b is plugged into a VM .* next migration or restart/);
      const again = await apply(vm('plug', { domain: dedicated, networks, terminationGracePeriodSeconds: 1 }));
      assert.equal(again.status, 0);
      assert.doesNotMatch(again.stderr, /plugged/);
    });

    it('get a warning for an annotation without effect', async () => {
      const annotations = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
      const { stderr } = await apply(vm('shared', { domain: {} }, annotations));
      assert.match(stderr, /Warning: annotation kubevirt.io\/CPUManagerPolicyBetaOptions has no effect/);
    });

    it('are refused with an unreadable affinity', async () => {
      const { stderr } = await apply(vm('odd', { domain: {} }, { 'plumbline.dev/numa-affinity': '{"a":"maybe"}' }));
      assert.match(stderr, /expected one of required, preferred, none/);
    });
  });

  describe('an API server with fewer features', () => {
    it('the MutatingAdmissionPolicy rounds without the webhook, and pods are not rounded twice', async () => {
      const { plane } = installed;
      const yaml = execFileSync(pathOf('kubectl'), ['kustomize', join(root, 'manifests/base/policies/mutating')], {
        encoding: 'utf8',
      });
      await plane.create(...parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject));
      const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
      assert.deepEqual(cpusOf(await create(ordinaryPod({ annotations: ALIGN, cpus: ['3', '8'] }), DRY)), ['4', '8']);
      await plane.client.delete(`${configurations}/plumbline-opt-in`);
      const validating = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
      await plane.client.delete(`${validating}/plumbline-webhook`);
      await until('the policy to round alone', async () => {
        const pod = await create(ordinaryPod({ annotations: ALIGN, cpus: ['3', '8'] }), DRY);
        assert.equal(pod.metadata.annotations?.['plumbline.dev/decision'], undefined);
        assert.equal(pod.spec.containers[0]?.resources.limits['plumbline.dev/placed'], '1');
        return cpusOf(pod).join() === '4,8';
      });
      const asks = ordinaryPod({ annotations: ALIGN, cpus: ['500m'] });
      const [shared] = asks.spec.containers;
      const amounts = { cpu: '5', memory: '1Gi' };
      const first = { name: 'first', image: 'none', resources: { limits: amounts } };
      const pod = await create({ ...asks, spec: { containers: [shared], initContainers: [first] } }, DRY);
      const { limits } = pod.spec.initContainers?.[0]?.resources ?? {};
      assert.deepEqual(limits, { cpu: '6', memory: '1Gi', 'plumbline.dev/placed': '1' });
      assert.deepEqual(cpusOf(pod), ['500m']);
      const path = '/api/v1/namespaces/plumbline-system/pods';
      const own = (await plane.client.create(path, ordinaryPod({ annotations: ALIGN }), { query: DRY })) as CreatedPod;
      assert.deepEqual(cpusOf(own), ['3']);
    });

    it('without the webhook, launchers that ask are refused and every other pod is admitted', async () => {
      await installed.stopWebhook();
      assert.deepEqual(cpusOf(await create(ordinaryPod(), DRY)), ['3']);
      const launcher = (annotations: Record<string, string>) => {
        const { spec, ...pod } = ordinaryPod({ annotations, labels: { 'kubevirt.io': 'virt-launcher' } });
        return { ...pod, spec: { containers: [{ ...spec.containers[0]!, name: 'compute' }] } };
      };
      await assert.rejects(
        create(launcher({ 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' }), DRY),
        /failed calling webhook "launcher\.plumbline\.dev"/,
      );
      assert.deepEqual(cpusOf(await create(launcher({}), DRY)), ['3']);
    });
  });
});
