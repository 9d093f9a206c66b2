import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import type { LeaseState } from '../../../model/lease/observer.ts';
import { dpuRefusal } from '../../../scheduler-plugin/filter/node-verdicts.ts';
import { type ExtenderFixture, extenderOf, onNode, podOf, statusOf, withUid } from '../extender-fixture.ts';

const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const dead = { ready: false, state: 'dead', age: 61.4 } as const;
const owner = (cpus: string) => [{ podUID: 'other', container: 'compute', cpus }];
const on = (changes: Parameters<typeof statusOf>[0]): ExtenderFixture => ({ nodes: { n1: statusOf(changes) } });
const bound = [{ node: 'n1', pod: withUid(podOf('8'), 'bound') }];
const SINGLE_NUMA = { topologyManager: { policy: 'single-numa-node' } } as const;
const countCheck = { policy: 'count-check' } as const;
/** The refusal is a part of the text; without one, the node must pass. */
const CASES: readonly (readonly [name: string, pod: Pod, fixture?: ExtenderFixture, refusal?: string])[] = [
  [
    'an odd pod on a full-pcpus-only node',
    podOf('9'),
    {},
    'SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2',
  ],
  [
    'a physnet whose NUMA node is full while the other is free',
    podOf('4', [PHYSNET1]),
    on({ assignments: owner('4-6,12-14') }),
    'no room on the NUMA nodes of a required network',
  ],
  [
    'a pod that needs CPUs of a bound pod that the report does not show yet',
    podOf('8'),
    { bound },
    'too few free whole cores',
  ],
  [
    'a pod next to a bound pod that the report shows and that counts once',
    podOf('4'),
    { ...on({ assignments: [{ podUID: 'bound', container: 'compute', cpus: '1-4,9-12' }] }), bound },
  ],
  ['a dead DPU', podOf('4'), { dpus: { n1: dead } }, 'DPU not ready: dead, last renewal 20'],
  [
    'a node that does not report, under refuse',
    podOf('4'),
    { nodes: { n1: undefined } },
    'does not report its topology',
  ],
  ['a node with a silent agent, under refuse', podOf('4'), { flags: { n1: 'stale' } }, 'agent has stopped reporting'],
  [
    'a node with a silent agent, under count-check, where only the exact prediction would refuse',
    podOf('8'),
    { ...on({ assignments: owner('4,12'), ...SINGLE_NUMA }), flags: { n1: 'stale' }, ...countCheck },
  ],
  [
    'a node where dra.cpu gives CPUs to claims',
    podOf('4'),
    { flags: { n1: 'draCpu' }, ...countCheck },
    'dra.cpu gives exclusive CPUs to claims only',
  ],
  ['a pod on the shared pool', podOf('1500m'), on({ assignments: owner('1-7,9-15') })],
];
describe('filter', () => {
  for (const [name, pod, fixture, refusal] of CASES)
    it(`${refusal === undefined ? 'passes' : 'refuses'} ${name}`, () => {
      const { filter, notified } = extenderOf(fixture);
      const { NodeNames, FailedNodes, FailedAndUnresolvableNodes } = filter(pod);
      // FailedNodes is always empty, because preemption cannot help.
      assert.deepEqual(FailedNodes, {});
      if (refusal === undefined) {
        assert.deepEqual([NodeNames, FailedAndUnresolvableNodes], [['n1'], {}]);
        assert.ok(!notified.includes('waits pod-uid'));
        return;
      }
      assert.deepEqual(NodeNames, []);
      assert.ok(FailedAndUnresolvableNodes['n1']?.includes(refusal), FailedAndUnresolvableNodes['n1']);
      assert.ok(notified.includes('waits pod-uid'));
    });

  const DPU_TEXTS: readonly [state: LeaseState, age: number | undefined, text: string][] = [
    ['unknown', undefined, 'its state is unknown'],
    ['unproven', undefined, 'not seen alive yet'],
    ['dead', 59.9, 'dead, last renewal TIME'],
  ];
  for (const [state, age, text] of DPU_TEXTS)
    it(`says of a DPU that is ${state} since ${age} s: ${text}`, () => {
      const { kind, text: refusal } = dpuRefusal({ ready: false, state, age });
      const timeless = refusal.replace(/\d{4}-\d\d-\d\dT[:\d]{8}Z/, 'TIME');
      assert.deepEqual([kind, timeless], ['dpu', `DPU not ready: ${text}`]);
    });

  it('returns a node once if it is offered twice, in this call and in the next', () => {
    const { filter } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    for (const uid of ['a', 'b'])
      assert.deepEqual(filter(withUid(podOf('500m'), uid), ['n1', 'n2', 'n1']).NodeNames, ['n1', 'n2']);
    assert.deepEqual(filter(withUid(podOf('12'), 'c'), ['n1', 'n1']).NodeNames, ['n1']);
  });

  it('ignores a dead Lease of a node that is not a DPU host', () => {
    const { filter, state } = extenderOf();
    state.setFlag('n1', 'dpuDead', true);
    assert.deepEqual(filter(podOf('4')).NodeNames, ['n1']);
    state.nodeChanged('n1', { dpuHost: true });
    assert.deepEqual(filter(podOf('4')).NodeNames, []);
  });

  it('ignores a quarantined report, also of shared CPUs: the policy decides', () => {
    const shared = statusOf({ cpuManager: { policy: 'none' } });
    for (const [policy, names] of [
      ['refuse', []],
      ['count-check', ['exclusive', 'shared']],
    ] as const) {
      const { filter, state } = extenderOf({ nodes: { exclusive: statusOf(), shared }, policy });
      for (const node of ['exclusive', 'shared']) state.nodeChanged(node, { dpuHost: false, cpus: 4 });
      assert.deepEqual(filter(podOf('64')).NodeNames, names);
    }
  });
});
describe('a node that was not offered', () => {
  const full = statusOf({ assignments: owner('1-7,9-15') });
  const found = (fixture: ExtenderFixture, offered: readonly string[], pod = podOf('4')) => {
    const { filter, notified } = extenderOf(fixture);
    filter(pod, offered);
    return notified.filter((line) => line.startsWith('neverOffered'));
  };

  it('is found if it accepts the pod, even behind many full nodes', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, full]));
    const nodes = { n1: full, ...many, n2: statusOf() };
    assert.deepEqual(found({ nodes }, ['n1']), ['neverOffered pod-uid n2']);
    assert.deepEqual(found({ nodes }, ['n1', 'n2']), [], 'an offered node accepts the pod');
    assert.deepEqual(found({ nodes }, Object.keys(nodes).slice(0, -1), podOf('14')), ['neverOffered pod-uid n2']);
    assert.deepEqual(found({ nodes }, Object.keys(nodes), podOf('16')), []);
  });

  it('is not found if it is full or has only a report', () => {
    assert.deepEqual(found({ nodes: { n1: full, n2: full } }, ['n1']), []);
    const { filter, notified, state } = extenderOf({ nodes: { n1: full } });
    state.reportChanged('n2', statusOf());
    filter(podOf('4'), ['n1']);
    assert.ok(!notified.includes('neverOffered pod-uid n2'));
    state.nodeChanged('n2', { dpuHost: false });
    filter(podOf('4'), ['n1']);
    assert.ok(notified.includes('neverOffered pod-uid n2'));
  });
});
describe('prioritize', () => {
  it('returns whole numbers from 0 to 10, more for a fuller node, and 0 for one that is not known', () => {
    const nodes = { empty: statusOf(), half: statusOf({ assignments: owner('1-3,9-11') }) };
    const { extender } = extenderOf({ nodes });
    const names = ['empty', 'half', 'gone'];
    const priorities = extender.prioritize({ pod: podOf('4'), names, nodes: undefined });
    const score = Object.fromEntries(priorities.map(({ Host, Score }) => [Host, Score]));
    for (const value of Object.values(score)) assert.ok(Number.isInteger(value) && value >= 0 && value <= 10);
    assert.ok((score['half'] ?? 0) > (score['empty'] ?? 0));
    assert.equal(score['gone'], 0);
  });

  it('returns nodes where the CPUs would be near a preferred network before fuller ones, where they would be far', () => {
    const network = { physnets: [{ name: 'physnet1', cells: '1' }], tunnel: undefined };
    // The kubelet starts with NUMA node 0 while it has room.
    const far = Array.from({ length: 30 }, (_, i) => [`far-${i}`, statusOf({ ...network, assignments: owner('1,9') })]);
    const near = statusOf({ ...network, physnets: [{ name: 'physnet1', cells: '0' }] });
    const nodes = Object.fromEntries([...far, ['near', near]]);
    const wish = { 'plumbline.dev/placement': JSON.stringify({ preferred: [PHYSNET1] }) };
    const preferring = { ...podOf('4'), metadata: { ...podOf('4').metadata, annotations: wish } };
    assert.deepEqual(extenderOf({ nodes, answers: 1 }).filter(preferring).NodeNames, ['near']);
    assert.deepEqual(extenderOf({ nodes, answers: 1 }).filter(podOf('4')).NodeNames, ['far-0']);
  });
});

const KVM = 'devices.kubevirt.io/kvm';
/** The kubelet's default. */
const SHARED = statusOf({ cpuManager: { policy: 'none' } });
const VM = {
  ...podOf('4', [KVM]),
  metadata: { ...podOf('4').metadata, labels: { 'kubevirt.io': 'virt-launcher' } },
  spec: { ...podOf('4', [KVM]).spec, nodeSelector: { 'kubevirt.io/cpumanager': 'true' } },
} as Pod;
describe('nodes whose CPU manager policy is none', () => {
  it('refuse a VM of KubeVirt 1.8 or later', () => {
    const { filter } = extenderOf({ nodes: { n1: SHARED } });
    assert.match(filter(VM).FailedAndUnresolvableNodes['n1'] ?? '', /gives no exclusive CPUs/);
  });

  it('take more CPUs than the report has free, also under count-check and while their agent is silent', () => {
    for (const fixture of [{}, { policy: 'count-check' }, { flags: { n1: 'stale' } }] as const)
      assert.deepEqual(extenderOf({ nodes: { n1: SHARED }, ...fixture }).filter(podOf('64')).NodeNames, ['n1']);
  });

  it('are all returned, in addition to the usual number of nodes where the pod would own its CPUs', () => {
    const exclusive = statusOf({ cpuManager: { policy: 'static' } });
    const nodes = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`n${i}`, i < 20 ? SHARED : exclusive]));
    const { NodeNames } = extenderOf({ nodes, answers: 4 }).filter(podOf('1'));
    const shared = NodeNames.filter((name) => Number(name.slice(1)) < 20);
    assert.deepEqual([shared.length, NodeNames.length - shared.length], [20, 4]);
  });

  it('reserve no CPUs for a pod, either before or after it is bound', () => {
    const { filter, state, see } = extenderOf({ nodes: { n1: SHARED } });
    for (let i = 0; i < 50; i++) {
      const pod = withUid(podOf('4'), `pod-${i}`);
      assert.deepEqual(filter(pod).NodeNames, ['n1']);
      assert.equal(state.reservations.size, 0, 'accepted');
      see(onNode(pod));
      assert.equal(state.reservations.size, 0, 'bound');
    }
  });

  it('release a reservation from before their first report', () => {
    const bound = [{ node: 'n1', pod: withUid(podOf('4'), 'early') }];
    const { state } = extenderOf({ nodes: { n1: undefined }, policy: 'count-check', bound });
    assert.equal(state.reservations.size, 1);
    state.reportChanged('n1', SHARED);
    assert.equal(state.reservations.size, 0);
  });
});
