import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { needs } from '../../support/parts.ts';
import { installPolicies, type Policies } from './policies-alone.ts';

const MERGE = 'application/merge-patch+json';
const DRY = { query: { dryRun: 'All' } };
const PODS = '/api/v1/namespaces/default/pods';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const POLICY = deniedByPolicy('plumbline-limits');

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}
const owner = (more: Partial<Owner> = {}): Owner => ({ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u', ...more });
const owners = (count: number) => Array.from({ length: count }, (_, index) => owner({ uid: `u${index}` }));

/** What exceeds a limit, what is exactly at it, and the message. */
const METADATA: [what: string, over: object, at: object, message: RegExp][] = [
  [
    'the name of an owner',
    { ownerReferences: [owner({ name: 'n'.repeat(254) })] },
    { ownerReferences: [owner({ name: 'n'.repeat(253) })] },
    /ownerReferences: a name may have 253 characters/,
  ],
  [
    'the uid of an owner',
    { ownerReferences: [owner({ uid: 'u'.repeat(65) })] },
    { ownerReferences: [owner({ uid: 'u'.repeat(64) })] },
    /a uid 64/,
  ],
  [
    'the kind of an owner',
    { ownerReferences: [owner({ kind: 'K'.repeat(64) })] },
    { ownerReferences: [owner({ kind: 'K'.repeat(63) })] },
    /a kind 63/,
  ],
  [
    'the number of owners',
    { ownerReferences: owners(65) },
    { ownerReferences: owners(64) },
    /at most 64 are allowed, and there are 65/,
  ],
  ...[
    'plumbline.dev/align',
    'plumbline.dev/cpu-mask-start',
    'plumbline.dev/fix-cpu-mismatch',
    'kubevirt.io/CPUManagerPolicyBetaOptions',
    'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity',
    'kubevirt.io/domain',
  ].map((name): [string, object, object, RegExp] => [
    `annotation ${name}`,
    { annotations: { [name]: 'x'.repeat(16_385) } },
    { annotations: { [name]: 'x'.repeat(16_384) } },
    new RegExp(`annotation ${name} is longer than 16384 characters`),
  ]),
];

describe('limits of pods and VMIs, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let installed: Policies;
  let client: KubeClient;
  const pod = (name: string, metadata: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'compute', image: 'none' }] },
  });
  const vmi = (name: string, metadata: object) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace: 'default', ...metadata },
    spec: {},
  });
  before(async () => {
    const long = { ownerReferences: [owner({ name: 'n'.repeat(1000) })], finalizers: ['example.org/kept'] };
    installed = await installPolicies({ before: [vmi('older', long)] });
    client = installed.client;
  });
  after(() => installed?.stop());

  for (const [kind, path, object] of [
    ['a pod', PODS, pod],
    ['a VMI', VMIS, vmi],
  ] as const) {
    it(`${kind} within the limits exists`, () => client.create(path, object('small', {})));

    for (const [what, over, at, message] of METADATA) {
      it(`${kind}: ${what}, at creation and later`, async () => {
        const change = (sub: string) => (metadata: object) =>
          client.patch(`${path}/small${sub}`, MERGE, { metadata }, DRY);
        const writes = [(metadata: object) => client.create(path, object('new', metadata), DRY), change('')];
        // The API server ignores owner references in a write of a pod's status.
        if (kind === 'a pod' && 'annotations' in over) writes.push(change('/status'));
        for (const write of writes) {
          const { message: text } = await write(over).then(
            () => assert.fail('it was accepted'),
            (error: Error) => error,
          );
          assert.match(text, POLICY);
          assert.match(text, message);
          assert.ok(text.length < 600, `${text.length} characters`);
          await write(at);
        }
      });
    }
  }

  it('an object that is older than the policy can be changed and deleted', async () => {
    await client.patch(`${VMIS}/older`, MERGE, { metadata: { labels: { a: 'b' } } });
    await client.patch(`${VMIS}/older`, MERGE, { metadata: { finalizers: null } });
    await client.delete(`${VMIS}/older`);
  });
});
