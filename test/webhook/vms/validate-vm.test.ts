import assert from 'node:assert/strict';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { denialOf, kindOf, localnet, viewOf } from '../launcher-fixture.ts';
import { CPU_MASK, type Kind, reviewVm, type Vm, type VmReview } from './fixture.ts';

const FULL = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
const AFFINITY = 'plumbline.dev/numa-affinity';
const WRONG_NAME = 'plumbline.dev/cpu-msk';
const net = (name: string, networkName = name) => ({ name, multus: { networkName } });
/** A VM whose launcher needs 9 CPUs of its own. */
const pinned = (...networks: object[]): Vm => ({
  spec: {
    domain: { cpu: { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true } },
    networks,
  },
});

const view = viewOf([kindOf(2, { physnets: { east: '0', west: '1', both: '0-1' } })], {
  findNad: ({ name }) => localnet(name),
});
const warningsOf = async (vm: Vm, review: VmReview = {}) => {
  const answer = await reviewVm(vm, { options: { view }, ...review });
  assert.ok(answer.allowed, JSON.stringify(answer));
  return (answer.warnings ?? []).join('\n');
};

describe('validation of VMs: warnings', () => {
  const cases: readonly (readonly [name: string, vm: Vm, warning: RegExp, old?: Vm])[] = [
    ['a VM without faults', { ...pinned(net('east')), annotations: FULL }, /^$/],
    [
      'required physnets on different NUMA nodes',
      pinned(net('a', 'east'), net('b', 'west')),
      /the required networks have no common NUMA node .*a \(physnet east\), b \(physnet west\)/,
    ],
    ['a physnet that no node reports', pinned(net('a', 'north')), /no node reports the physnet north/],
    [
      'the same with an instancetype, which may need no exclusive CPUs',
      { ...pinned(net('a', 'north')), annotations: { [AFFINITY]: '{"a":"required"}' }, instancetype: {} },
      /^$/,
    ],
    [
      'an unknown annotation of Plumbline',
      { ...pinned(), annotations: { [WRONG_NAME]: '1:2', 'plumbline.dev/decision': '{}', 'other.dev/x': '' } },
      /^annotation "plumbline\.dev\/cpu-msk" is unknown and has no effect: those of a VM are plumbline\.dev\/cpu-mask, /,
    ],
    [
      'an unknown annotation that was there before',
      { ...pinned(), annotations: { [WRONG_NAME]: '1:2' } },
      /^$/,
      { ...pinned(), annotations: { [WRONG_NAME]: '1:3' } },
    ],
    [
      'an annotation outside the template',
      { ...pinned(), metadata: { annotations: FULL } },
      /no effect here: put it into spec\.template\.metadata\.annotations/,
    ],
    [
      'a hotplugged NIC',
      pinned(net('east'), net('both')),
      /interface both is plugged into a VM .* next migration or restart/,
      pinned(net('east')),
    ],
    [
      'a hotplugged NIC without an affinity',
      { ...pinned(net('both')), annotations: { ...FULL, [AFFINITY]: '{"both":"none"}' } },
      /^$/,
      pinned(),
    ],
    ['a fault that an earlier review has warned about', pinned(net('a', 'north')), /^$/, pinned(net('a', 'north'))],
    [
      'an unannotated VM of 8 vCPUs and an emulator thread',
      pinned(),
      /asks for 9 CPUs: every node it can go to \(2 threads per core\) rejects it, SMTAlignmentError; annotate/,
    ],
  ];
  for (const [name, vm, warning, old] of cases)
    it(`${warning.source === '^$' ? 'none for' : 'for'} ${name}`, async () =>
      assert.match(await warningsOf(vm, { old }), warning));

  const scheduled = (schedulerName: string | undefined, affinity?: string): Vm => ({
    annotations: affinity === undefined ? {} : { [AFFINITY]: affinity },
    spec: { schedulerName },
  });
  for (const [what, vm, isWarned, old] of [
    ['another scheduler', scheduled('other', '{}'), true],
    ['another scheduler that an update names', scheduled('other', '{}'), true, scheduled(undefined, '{}')],
    ['another scheduler that it had before', scheduled('other', '{"x":"none"}'), false, scheduled('other', '{}')],
    ['another scheduler of a VM that asks for nothing', scheduled('other'), false],
    ['Plumbline’s scheduler', scheduled('plumbline-scheduler', '{}'), false],
    ['no scheduler', scheduled(undefined, '{}'), false],
  ] as const)
    it(`${isWarned ? 'for' : 'none for'} ${what}`, async () => {
      const options = { route: { schedulerName: 'plumbline-scheduler' } };
      assert.equal((await warningsOf(vm, { old, options })).includes('scheduler'), isWarned);
    });

  it('for an object that cannot be read, which is left to KubeVirt', async () => {
    const request = { object: { metadata: {}, spec: 7 } };
    assert.match(await warningsOf({}, { request }), /has not checked it/);
  });
});

describe('validation of VMs: refusals', () => {
  /** A mask for three vCPUs on a VM of two. */
  const WRONG: Vm = { annotations: { [CPU_MASK]: '0:1:2' } };
  for (const kind of ['VirtualMachineInstance', 'VirtualMachineInstanceReplicaSet', 'VirtualMachinePool'] as const)
    it(`apply to a ${kind} as to a VM`, async () => {
      assert.equal(denialOf(await reviewVm(WRONG, { kind })).code, 422);
      assert.match(await warningsOf(pinned(net('a', 'north')), { kind }), /no node reports the physnet north/);
    });

  const unconcerned: [what: string, request: Partial<AdmissionRequest>, vm?: Vm][] = [
    ['a deletion', { operation: 'DELETE' }],
    ['a connection', { operation: 'CONNECT' }],
    ['a subresource', { subResource: 'status' }],
    ['another kind', { kind: { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachinePreference' } }],
    ['a VM that is being deleted', {}, { ...WRONG, metadata: { deletionTimestamp: '2026-09-01T08:00:00Z' } }],
  ];
  for (const [what, request, vm = WRONG] of unconcerned)
    it(`none for ${what}`, async () => assert.deepEqual(await reviewVm(vm, { request }), { allowed: true }));

  const TOO_LARGE =
    /^(plumbline: )?larger than the NUMA nodes of its networks on every node that it can go to: interface east \(physnet east\) is on NUMA node 0, where pods can have 6 CPUs at most, and it requests 9$/m;
  const small = [kindOf(2, { physnets: { east: '0' }, rooms: { 0: 6, 1: 8 } })];
  const smallView = (more: Parameters<typeof viewOf>[1] = {}) => ({
    view: viewOf(small, { findNad: () => localnet('east'), ...more }),
  });

  it('refuse a VM that is larger than the NUMA node of its network on every node, with the reason', async () =>
    assert.match(denialOf(await reviewVm(pinned(net('east')), { options: smallView() })).message, TOO_LARGE));

  const lenient: [what: string, review: VmReview][] = [
    ['a node has not reported', { options: smallView({ allReport: () => false }) }],
    ['larger nodes may join', { options: { ...smallView(), oversized: 'warn' } }],
    ['it exists', { options: smallView(), old: pinned() }],
  ];
  for (const [what, review] of lenient)
    it(`only warn about such a VM if ${what}`, async () =>
      assert.match(await warningsOf(pinned(net('east')), review), TOO_LARGE));
});

describe('what a review of a VM reads', () => {
  for (const [what, requested, own, expected] of [
    ['of the request', 'asked', 'own', 'asked'],
    ['of the object, if the request has none', undefined, 'own', 'own'],
  ] as const)
    it(`the networks of the namespace: ${what}`, async () => {
      const namespaces = new Set<string>();
      const findNad = ({ namespace }: { readonly namespace: string }) => {
        namespaces.add(namespace);
        return localnet('east');
      };
      const options = { view: viewOf([kindOf(2)], { findNad }) };
      const request = { namespace: requested } as Partial<AdmissionRequest>;
      await reviewVm({ ...pinned(net('east')), metadata: { namespace: own } }, { options, request });
      assert.deepEqual([...namespaces], [expected]);
    });

  const kind: Kind = 'VirtualMachine';
  for (const [part, value] of [
    ['networks', [net('a', 'east')]],
    ['nodeSelector', { zone: 'a' }],
    ['affinity', { nodeAffinity: {} }],
    ['livenessProbe', { tcpSocket: { port: 22 } }],
    ['schedulerName', 'other'],
    ['tolerations', [{ key: 'a', operator: 'Exists' }]],
    ['nothing', undefined],
  ] as const)
    it(`the nodes, if an update changes ${part}`, async () => {
      let reads = 0;
      const candidates = () => {
        reads++;
        return [kindOf(2)];
      };
      const options = { view: viewOf([kindOf(2)], { candidates }) };
      await reviewVm({ spec: value === undefined ? {} : { [part]: value } }, { kind, old: {}, options });
      assert.equal(reads > 0, value !== undefined);
    });
});
