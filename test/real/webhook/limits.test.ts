import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { onControlPlane, podOf } from '../control-plane-stage.ts';
import { bindingOf, installPolicies, type Policies, userSubject } from './policies-stage.ts';

const MERGE = 'application/merge-patch+json';
const DRY = { query: { dryRun: 'All' } };
const PODS = '/api/v1/namespaces/default/pods';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const POLICY = deniedByPolicy('plumbline-limits');
const DECISION = 'plumbline.dev/decision';
const PLACEMENT = 'plumbline.dev/placement';

const owner = (more: object) => ({ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u', ...more });
const MIRROR = 'kubernetes.io/config.mirror';
const NODES = ['system:node:worker', 'system:node:other'];
const ANNOTATIONS = [
  'plumbline.dev/align',
  'plumbline.dev/cpu-mask-start',
  'plumbline.dev/fix-cpu-mismatch',
  'kubevirt.io/CPUManagerPolicyBetaOptions',
  'k8s.v1.cni.cncf.io/networks',
  'v1.multus-cni.io/default-network',
];

const owned = (more: object) => ({ ownerReferences: [owner(more)] });
const manyOwners = (count: number) => Array.from({ length: count }, (_, index) => owner({ uid: `u${index}` }));

type Row<T> = readonly [what: string, make: (excess: number) => T, message: RegExp];

/** Metadata that exceeds a limit by a number, and the message. */
const METADATA: readonly Row<object>[] = [
  ['the name of an owner', (more) => owned({ name: 'n'.repeat(253 + more) }), /ownerReferences: a name may have 253/],
  ['the uid of an owner', (more) => owned({ uid: 'u'.repeat(64 + more) }), /a uid 64/],
  ['the kind of an owner', (more) => owned({ kind: 'K'.repeat(64 + more) }), /a kind 64/],
  ['the number of owners', (more) => ({ ownerReferences: manyOwners(64 + more) }), /at most 64 .*, and there are 65/],
  ...ANNOTATIONS.map(
    (name): Row<object> => [
      `annotation ${name}`,
      (more) => ({ annotations: { [name]: 'x'.repeat(16_384 + more) } }),
      new RegExp(`annotation ${name} is longer than 16384 bytes`),
    ],
  ),
];

const strings = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`);
const map = (count: number, value: string) => Object.fromEntries(strings(count).map((key) => [`a/${key}`, value]));
const affinity = (nodeSelectorTerms: readonly object[], preferred: readonly object[] = []) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
    },
  },
});
const terms = (count: number, requirements: number, values: number) =>
  Array.from({ length: count }, () => ({
    matchExpressions: Array.from({ length: requirements }, () => ({
      key: 'k',
      operator: 'In',
      values: strings(values),
    })),
  }));
const preferred = (count: number) => terms(count, 1, 1).map((preference) => ({ weight: 1, preference }));

/** The API server adds two of these to a pod that has none of them. */
const tolerations = (count: number) =>
  ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable', ...strings(count - 2)].map((key) => {
    return { key, operator: 'Exists' };
  });
const image = 'none';
const withResources = (amounts: object) => ({
  containers: [{ name: 'c', image, resources: { requests: amounts, limits: amounts } }],
});
const named = (field: string, count: number, more: object = {}) => ({
  [field]: strings(count).map((name) => ({ name, ...more })),
});

/** A spec that exceeds a limit by a number. A pod has its containers in addition. */
const SPECS: readonly Row<object>[] = [
  ['entries of the node selector', (more) => ({ nodeSelector: map(512 + more, 'x') }), /nodeSelector: at most 512/],
  ['required terms', (more) => affinity(terms(64 + more, 1, 1)), /at most 64 terms/],
  ['preferred terms', (more) => affinity(terms(1, 1, 1), preferred(64 + more)), /at most 64 terms/],
  ['requirements', (more) => affinity([...terms(2, 100, 1), ...terms(1, 56 + more, 1)]), /at most 256 requirements/],
  ['values', (more) => affinity([...terms(1, 4, 1000), ...terms(1, 1, 96 + more)]), /at most 4096 values/],
  ['tolerations', (more) => ({ tolerations: tolerations(512 + more) }), /spec.tolerations: at most 512/],
  ['the scheduler’s name', (more) => ({ schedulerName: 's'.repeat(253 + more) }), /schedulerName: at most 253 bytes/],
];
const SPECS_OF_PODS: typeof SPECS = [
  ['containers', (more) => named('containers', 512 + more, { image }), /spec.containers: at most 512/],
  ['volumes', (more) => named('volumes', 1024 + more, { emptyDir: {} }), /spec.volumes: at most 1024/],
  ['scheduling gates', (more) => named('schedulingGates', 64 + more), /spec.schedulingGates: at most 64/],
  ['resources of a container', (more) => withResources(map(512 + more, '1')), /resources: at most 512/],
];
const network = (networkName: string) => ({ networks: [{ name: 'a', multus: { networkName } }] });
const request = (cpu: string) => ({ domain: { resources: { requests: { cpu } } } });
const SPECS_OF_VMIS: typeof SPECS = [
  ['networks', (more) => named('networks', 256 + more), /spec.networks: at most 256/],
  ['the name of a definition', (more) => network('d'.repeat(317 + more)), /definitions of 317/],
  ['a quantity', (more) => request(`${'0'.repeat(63 + more)}1`), /a quantity 64/],
  [
    'a value of the node selector',
    (more) => ({ nodeSelector: { a: 'x'.repeat(64 + more) } }),
    /317 bytes and a value 64/,
  ],
  ['the start strategy', (more) => ({ startStrategy: 's'.repeat(64 + more) }), /startStrategy: at most 64/],
];

describe('limits and reserved names of pods and VMIs, on a real API server', function () {
  onControlPlane(this);
  let installed: Policies;
  let client: KubeClient;
  const pod = (name: string, metadata: object) => podOf({ name, ...metadata });
  const vmi = (name: string, metadata: object) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace: 'default', ...metadata },
    spec: {},
  });
  before(async () => {
    const long = { ...owned({ name: 'n'.repeat(1000) }), finalizers: ['example.org/kept'] };
    const after = NODES.map((user, i) => bindingOf(userSubject(user), 'cluster-admin', undefined, `node-${i}`));
    installed = await installPolicies({ users: NODES, before: [vmi('older', long)], after });
    client = installed.client;
    await client.create(PODS, pod('small', {}));
    await client.create(VMIS, vmi('small', {}));
  });
  after(() => installed?.stop());

  for (const [kind, path, object] of [
    ['a pod', PODS, pod],
    ['a VMI', VMIS, vmi],
  ] as const) {
    for (const [what, metadataOf, message] of METADATA) {
      it(`${kind}: ${what}, at creation and later`, async () => {
        const change = (sub: string) => (metadata: object) =>
          client.patch(`${path}/small${sub}`, MERGE, { metadata }, DRY);
        const writes = [(metadata: object) => client.create(path, object('new', metadata), DRY), change('')];
        // The API server ignores owner references in a write of a pod's status.
        if (kind === 'a pod' && what.startsWith('annotation')) writes.push(change('/status'));
        for (const write of writes) {
          const { message: text } = await write(metadataOf(1)).then(
            () => assert.fail('it was accepted'),
            (error: Error) => error,
          );
          assert.match(text, POLICY);
          assert.match(text, message);
          assert.ok(text.length < 600, `${text.length} characters`);
          await write(metadataOf(0));
        }
      });
    }
  }

  for (const [kind, path, specs, objectOf] of [
    ['a pod', PODS, [...SPECS, ...SPECS_OF_PODS], (spec: object) => podOf({ name: 'new' }, spec)],
    ['a VMI', VMIS, [...SPECS, ...SPECS_OF_VMIS], (spec: object) => ({ ...vmi('new', {}), spec })],
  ] as const) {
    for (const [what, specOf, message] of specs) {
      it(`${kind}: ${what}`, async () => {
        await assert.rejects(client.create(path, objectOf(specOf(1)), DRY), ({ message: text }: Error) => {
          assert.match(text, POLICY);
          assert.match(text, message);
          return true;
        });
        await client.create(path, objectOf(specOf(0)), DRY);
      });
    }
  }

  it('counts bytes, of which a text has at least as many as the daemons count', async () => {
    const annotations = (count: number) => ({ annotations: { 'plumbline.dev/align': '\u{1f600}'.repeat(count) } });
    await assert.rejects(client.create(PODS, pod('new', annotations(4097)), DRY), POLICY);
    await client.create(PODS, pod('new', annotations(4096)), DRY);
  });

  it('an object that is older than the policy can be changed and deleted', async () => {
    await client.patch(`${VMIS}/older`, MERGE, { metadata: { labels: { a: 'b' } } });
    await client.patch(`${VMIS}/older`, MERGE, { metadata: { finalizers: null } });
    await client.delete(`${VMIS}/older`);
  });

  describe('Plumbline’s own annotations', () => {
    const annotated = (name: string, annotations: Record<string, string>, labels: Record<string, string> = {}) =>
      podOf({ name, annotations, labels });
    const annotate = (name: string, annotations: object, subresource = '') =>
      client.patch(`${PODS}/${name}${subresource}`, MERGE, { metadata: { annotations } });
    const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };

    for (const name of [DECISION, PLACEMENT]) {
      const settled = new RegExp(
        `annotation ${name} is reserved for Plumbline; it cannot be added, changed or removed`,
      );

      it(`${name}: not allowed on a pod without a decision`, async () => {
        for (const value of ['{}', '']) {
          const create = () => client.create(PODS, annotated('tenants', { [name]: value }), DRY);
          await assert.rejects(create, new RegExp(`${name} is reserved; only Plumbline may set it`));
        }
      });

      it(`${name}: neither changed nor removed after creation, also through the status`, async () => {
        const decided = `decided-${name.split('/')[1]}`;
        await client.create(PODS, annotated(decided, { [name]: '{}' }, LAUNCHER));
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
        await client.create(PODS, annotated(bare, {}, LAUNCHER));
        for (const subresource of ['', '/status'])
          await assert.rejects(annotate(bare, { [name]: '' }, subresource), settled);
      });
    }

    it('none of Plumbline’s annotations can be written through a Binding, which the API server copies to the pod', async () => {
      await client.create(PODS, annotated('unbound', {}, LAUNCHER));
      const binding = (annotations: object) => ({
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: 'unbound', annotations },
        target: { kind: 'Node', name: 'worker' },
      });
      for (const path of [`${PODS}/unbound/binding`, '/api/v1/namespaces/default/bindings']) {
        for (const name of [DECISION, PLACEMENT, 'plumbline.dev/cpu-mask', MIRROR, 'kubernetes.io/config.hash']) {
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

    it('only a node makes a mirror pod, for itself, and no pod becomes one later', async () => {
      const mirror = (name: string) => podOf({ name, annotations: { [MIRROR]: '1' } }, { nodeName: 'worker' });
      const [worker, other] = await Promise.all(NODES.map((node) => installed.user(node)));
      for (const denied of [client, other]) {
        const create = denied?.create(PODS, mirror('static-worker'));
        await assert.rejects(create ?? assert.fail(), deniedByPolicy('plumbline-mirror-pods'));
      }
      await worker?.create(PODS, mirror('static-worker'));
      await client.create(PODS, annotated('ordinary', {}));
      for (const sub of ['', '/status'])
        await assert.rejects(annotate('ordinary', { [MIRROR]: '1' }, sub), /may not add mirror pod annotation/, sub);
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
        const aligned = annotated('aligned', { [DECISION]: JSON.stringify({ cpus }) }, LAUNCHER);
        const create = () => client.create(PODS, { ...aligned, spec: { containers } }, DRY);
        if (message === undefined) await create();
        else await assert.rejects(create, message);
      });
    }
  });
});
