import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { type KubernetesObject, namespaceOf, onControlPlane } from '../control-plane-stage.ts';
import { bindingOf, installPolicies, type Policies, userSubject } from './policies-stage.ts';

const MASK = 'plumbline.dev/cpu-mask';
const AFFINITY = 'plumbline.dev/numa-affinity';
const MERGE = 'application/merge-patch+json';
const GROUP = 'rbac.authorization.k8s.io';
const MAX_MASK_BYTES = 16_384;
const TENANT = namespaceOf('tenant');

const VERBS = ['create', 'patch', 'update', 'get'];
/** The permissions of KubeVirt's own role `edit` for these groups, and of a careless role for ControllerRevisions. */
const EDIT: KubernetesObject = {
  apiVersion: `${GROUP}/v1`,
  kind: 'ClusterRole',
  metadata: { name: 'vm-edit' },
  rules: [
    ...['', 'pool.', 'instancetype.', 'snapshot.', 'clone.'].map((group) => ({
      apiGroups: [`${group}kubevirt.io`],
      resources: ['*'],
      verbs: VERBS,
    })),
    { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: VERBS },
    { apiGroups: [''], resources: ['pods'], verbs: VERBS },
  ],
};

interface Source {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly cluster?: true;
  content(annotations: Record<string, string>): object;
}

const vmWith = (annotations: object) => ({ spec: { template: { metadata: { annotations }, spec: { domain: {} } } } });
const vmOf = (name: string, mask: string) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: 'tenant' },
  ...vmWith({ [MASK]: mask }),
});
const instancetype = (kind: string, cluster?: true): Source => ({
  apiVersion: 'instancetype.kubevirt.io/v1beta1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  ...(cluster && { cluster }),
  content: (annotations) => ({ spec: { annotations } }),
});
const revision = (what: string, data: (annotations: object) => object): [string, Source] => [
  `a ControllerRevision of ${what}`,
  {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    plural: 'controllerrevisions',
    content: (annotations) => ({ revision: 1, data: data(annotations) }),
  },
];
const SOURCES: [string, Source][] = [
  ['an instancetype', instancetype('VirtualMachineInstancetype')],
  ['a preference', instancetype('VirtualMachinePreference')],
  ['a cluster instancetype', instancetype('VirtualMachineClusterInstancetype', true)],
  ['a cluster preference', instancetype('VirtualMachineClusterPreference', true)],
  [
    'the content of a snapshot',
    {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineSnapshotContent',
      plural: 'virtualmachinesnapshotcontents',
      content: (annotations) => ({ spec: { source: { virtualMachine: vmWith(annotations) } } }),
    },
  ],
  revision('an instancetype', (annotations) => ({
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineInstancetype',
    spec: { annotations },
  })),
  revision('a started VM', vmWith),
  revision('a started VM, its keys as Go reads them too', (annotations) => ({
    Spec: { TEMPLATE: { metadata: { annotationſ: annotations } } },
  })),
];

const MASKING: [string, string][] = [
  ['the path', `{"op":"add","path":"/spec/template/metadata/annotations/plumbline.dev~1cpu-mask","value":"0"}`],
  ['all annotations', `{"op":"replace","path":"/spec/template/metadata/annotations","value":{"${MASK}":"0"}}`],
  [
    'an escaped slash',
    `{"op":"replace","path":"/spec/template/metadata/annotations","value":{"plumbline.dev\\/cpu-mask":"0"}}`,
  ],
  [
    'an escaped letter',
    `{"op":"add","path":"/spec/template/metadata/annotations/\\u0070lumbline.dev~1cpu-mask","value":"0"}`,
  ],
  [
    'a copy of the VM’s own',
    '{"op":"copy","from":"/metadata/annotations","path":"/spec/template/metadata/annotations"}',
  ],
];
const HARMLESS = [
  '{"op":"replace","path":"/spec/template/spec/domain/cpu/cores","value":2}',
  '{"op":"add","path":"/metadata/annotations/note","value":"mine"}',
  '{"op":"add","path":"/spec/template/metadata/annotations/example.org~1cpu-mask","value":"mine"}',
  '{"op":"remove","path":"/spec/template/metadata/labels/a"}',
];

describe('users who may write the sources of a CPU mask, on a real API server', function () {
  onControlPlane(this);
  let installed: Policies;
  let guest: KubeClient;
  let owner: KubeClient;
  let architect: KubeClient;
  let count = 0;

  before(async () => {
    const long = vmOf('long', '0'.repeat(MAX_MASK_BYTES + 1));
    installed = await installPolicies({
      users: ['guest', 'owner', 'architect'],
      before: [TENANT, long],
      after: [
        EDIT,
        namespaceOf('kubevirt'),
        bindingOf(userSubject('guest'), 'vm-edit', undefined),
        bindingOf(userSubject('owner'), 'vm-edit', undefined),
        bindingOf(userSubject('owner'), 'plumbline-cpu-mask-user', 'tenant'),
        bindingOf(userSubject('architect'), 'vm-edit', undefined),
        bindingOf(userSubject('architect'), 'plumbline-cpu-mask-user', undefined),
        bindingOf(
          { kind: 'Group', apiGroup: GROUP, name: 'system:serviceaccounts:kubevirt' },
          'vm-edit',
          undefined,
          'kubevirt',
        ),
      ],
    });
    guest = await installed.user('guest');
    owner = await installed.user('owner');
    architect = await installed.user('architect');
  });
  after(() => installed?.stop());

  const pathOf = ({ apiVersion, plural, cluster }: Omit<Source, 'content' | 'kind'>) =>
    `/apis/${apiVersion}${cluster ? '' : '/namespaces/tenant'}/${plural}`;
  const create = (as: KubeClient, source: Source, annotations: Record<string, string>, name = `o-${++count}`) => {
    const { apiVersion, kind } = source;
    return as.create(pathOf(source), { apiVersion, kind, metadata: { name }, ...source.content(annotations) });
  };
  const mayNot = (where = 'namespace tenant') => new RegExp(`user \\w+ may not use CPU masks in ${where}`);

  for (const [what, source] of SOURCES) {
    it(`${what}: takes the permission to be written with a mask, at creation and later`, async () => {
      const whoever = source.cluster ? architect : owner;
      const where = source.cluster ? 'the whole cluster' : undefined;
      await assert.rejects(create(guest, source, { [MASK]: '0' }), mayNot(where));
      if (source.cluster)
        await assert.rejects(create(owner, source, { [MASK]: '0' }), mayNot(where), 'by a namespace’s owner');
      await create(whoever, source, { [MASK]: '0' });
      const name = `later-${++count}`;
      await create(guest, source, { note: 'mine' }, name);
      // The content of a revision cannot be changed.
      if (source.kind === 'ControllerRevision') return;
      const patch = (as: KubeClient, content: object) => as.patch(`${pathOf(source)}/${name}`, MERGE, content);
      await assert.rejects(patch(guest, source.content({ [MASK]: '0' })), mayNot(where));
      await patch(whoever, source.content({ [MASK]: '0' }));
      await patch(guest, { metadata: { labels: { a: 'b' } } });
      await patch(guest, source.content({ note: 'yours' }));
      await assert.rejects(patch(guest, source.content({ [MASK]: '1' })), mayNot(where), 'another mask');
    });
  }

  for (const [apiVersion, kind] of [
    ['snapshot.kubevirt.io/v1beta1', 'VirtualMachineRestore'],
    ['clone.kubevirt.io/v1beta1', 'VirtualMachineClone'],
  ] as const) {
    describe(`patches of a ${kind}`, () => {
      const path = pathOf({ apiVersion, plural: `${kind.toLowerCase()}s` });
      const object = (patches: readonly string[], name = `o-${++count}`) => ({
        apiVersion,
        kind,
        metadata: { name },
        spec: { patches },
      });
      for (const [what, patch] of MASKING) {
        it(`require the permission if they write a mask: ${what}`, async () => {
          await assert.rejects(guest.create(path, object([HARMLESS[0]!, patch])), mayNot());
          await owner.create(path, object([patch]));
        });
      }

      it('are allowed to every user if they write none, like an object without patches', async () => {
        await guest.create(path, object(HARMLESS, 'harmless'));
        await guest.create(path, { ...object([]), spec: {} });
        const add = { spec: { patches: [MASKING[0]![1]] } };
        await assert.rejects(guest.patch(`${path}/harmless`, MERGE, add), mayNot());
        await owner.patch(`${path}/harmless`, MERGE, add);
        await guest.patch(`${path}/harmless`, MERGE, { metadata: { labels: { a: 'b' } } });
      });
    });
  }

  describe('KubeVirt’s own accounts', () => {
    const path = '/apis/kubevirt.io/v1/namespaces/tenant/virtualmachines';

    it('its controller may pass masks on', async () => {
      const controller = await installed.account('kubevirt', 'kubevirt-controller');
      await controller.create(path, vmOf('restored', '0'));
    });

    it('the API server of its VM templates may not, because it creates VMs from its caller’s input', async () => {
      const templates = await installed.account('kubevirt', 'virt-template-apiserver');
      await assert.rejects(
        templates.create(path, vmOf('templated', '0')),
        /virt-template-apiserver may not use CPU masks/,
      );
    });
  });

  describe('the annotations', () => {
    const template = (metadata: unknown) => ({ spec: { template: { metadata } } });
    const inPool = (metadata: unknown) => ({ spec: { virtualMachineTemplate: template(metadata) } });
    const inInstancetype = (metadata: unknown) => ({ spec: (metadata ?? {}) as object });
    const inSnapshot = (metadata: unknown) => ({ spec: { source: { virtualMachine: template(metadata) } } });
    const inVmi = (metadata: unknown) => ({ metadata, spec: { domain: {} } });
    const inPod = (metadata: unknown) => ({ metadata, spec: { containers: [{ name: 'c', image: 'none' }] } });
    const kinds: [apiVersion: string, kind: string, isOpen: boolean, content: (metadata: unknown) => object][] = [
      ['kubevirt.io/v1', 'VirtualMachine', true, template],
      ['kubevirt.io/v1', 'VirtualMachineInstanceReplicaSet', true, template],
      ['pool.kubevirt.io/v1beta1', 'VirtualMachinePool', true, inPool],
      ['instancetype.kubevirt.io/v1beta1', 'VirtualMachineInstancetype', true, inInstancetype],
      ['snapshot.kubevirt.io/v1beta1', 'VirtualMachineSnapshotContent', true, inSnapshot],
      ['kubevirt.io/v1', 'VirtualMachineInstance', false, inVmi],
      ['v1', 'Pod', false, inPod],
    ];
    const shapes: [string, unknown][] = [
      ['null', null],
      ['a number', 7],
      ['a list', ['0']],
      ['a boolean', true],
      ['an object', { a: '0' }],
    ];
    for (const [apiVersion, kind, isOpen, content] of kinds) {
      const path = `${apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`}/namespaces/tenant/${kind.toLowerCase()}s`;
      const write = (metadata: unknown) => {
        const object = content(metadata) as { metadata?: object };
        const named = { ...object.metadata, name: `o-${++count}` };
        return owner.create(path, { apiVersion, kind, ...object, metadata: named });
      };
      for (const name of [MASK, AFFINITY]) {
        it(`${kind}: ${name} may have 16384 bytes, and the message does not repeat a longer one`, async () => {
          await write({ annotations: { [name]: '7'.repeat(MAX_MASK_BYTES) } });
          const tooLong = write({ annotations: { [name]: '7'.repeat(MAX_MASK_BYTES + 1) } });
          await assert.rejects(tooLong, ({ message }: Error) => {
            assert.match(message, new RegExp(`annotation ${name} is longer than 16384 bytes`));
            assert.doesNotMatch(message, /777/);
            return message.length < 500;
          });
        });
      }
      if (!isOpen) continue;
      it(`${kind}: values of every other type are refused with the reason`, async () => {
        for (const [what, value] of shapes) {
          for (const name of [MASK, AFFINITY]) {
            const message = new RegExp(`annotation ${name} must be a text: write it in quotes`);
            await assert.rejects(write({ annotations: { [name]: value } }), message, `${name}: ${what}`);
          }
          if (what === 'null' || what === 'an object') await write({ annotations: value });
          else await assert.rejects(write({ annotations: value }), /must be a map of texts/, `annotations: ${what}`);
        }
        await write(null);
        await write({});
      });
    }

    it('an object that already has a longer one keeps working, and can be corrected', async () => {
      const path = '/apis/kubevirt.io/v1/namespaces/tenant/virtualmachines/long';
      await guest.patch(path, MERGE, { metadata: { finalizers: null, labels: { a: 'b' } } });
      await owner.patch(path, MERGE, vmWith({ [MASK]: '0' }));
    });
  });
});
