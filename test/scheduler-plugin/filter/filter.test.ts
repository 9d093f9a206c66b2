import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import type { ExtenderFixture } from '../extender-fixture.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const PHYSNET0 = 'physnet.plumbline.dev/physnet0';
const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const annotated = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } },
});
const daemonPod = (pod: Pod): Pod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }],
  },
});
const withInit = (pod: Pod, cpu: string): Pod => {
  const amounts = { cpu, memory: '1Gi' };
  return {
    ...pod,
    spec: { ...pod.spec, initContainers: [{ name: 'init', resources: { requests: amounts, limits: amounts } }] },
  };
};
const dead = { ready: false, state: 'dead', age: 61.4 } as const;
const owner = (cpus: string) => [{ podUID: 'other', container: 'compute', cpus }];

interface Case {
  readonly name: string;
  readonly pod: Pod;
  readonly fixture?: ExtenderFixture;
  /** The refusal's text, or undefined where the node must pass. */
  readonly refused?: RegExp;
}

const CASES: readonly Case[] = [
  { name: 'an aligned pod on an empty node', pod: podOf('4') },
  {
    name: 'an odd pod on a full-pcpus-only node',
    pod: podOf('9'),
    refused: /SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2/,
  },
  {
    name: 'an odd pod on a plain static node',
    pod: podOf('9'),
    fixture: { nodes: { n1: statusOf({ cpuManager: { policy: 'static' } }) } },
  },
  {
    name: 'a pod that needs whole cores on a node with free threads but too few free whole cores',
    pod: annotated(podOf('4')),
    fixture: { nodes: { n1: statusOf({ cpuManager: { policy: 'static' }, assignments: owner('1-6') }) } },
    refused: /too few free whole cores/,
  },
  {
    name: 'a pod that needs whole cores on free threads of larger cores, where the promise does not hold',
    pod: annotated(podOf('6')),
    fixture: {
      nodes: {
        n1: statusOf({
          cores: [0, 1, 2, 3].map((core) => `${core},${core + 4},${core + 8},${core + 12}`),
          cells: [{ id: 0, cpus: '0-15' }],
          reserved: '0',
          cpuManager: { policy: 'static' },
          assignments: owner('1-9'),
          physnets: [],
          tunnel: undefined,
        }),
      },
    },
  },
  { name: 'a physnet whose NUMA node has room', pod: podOf('8', [PHYSNET1]) },
  {
    name: 'a physnet whose NUMA node is full while the other is free',
    pod: podOf('4', [PHYSNET1]),
    fixture: { nodes: { n1: statusOf({ assignments: owner('4-6,12-14') }) } },
    refused: /no room on the NUMA nodes of a required network/,
  },
  {
    name: 'a physnet whose NUMA node is full on a node with exactly as many CPUs as the pod needs',
    pod: podOf('8', [PHYSNET1]),
    fixture: { nodes: { n1: statusOf({ assignments: owner('4-6,12-14') }) } },
    refused: /no room on the NUMA nodes of a required network/,
  },
  {
    name: 'a physnet whose NUMA node is full on a node with fewer CPUs than the pod needs',
    pod: podOf('8', [PHYSNET1]),
    fixture: { nodes: { n1: statusOf({ assignments: owner('3-6,11-14') }) } },
    refused: /too few free whole cores/,
  },
  {
    name: 'a pod that takes the last CPUs of a node without networks',
    pod: podOf('4'),
    fixture: { nodes: { n1: statusOf({ physnets: [], assignments: owner('1-5,9-13') }) } },
  },
  {
    name: 'a pod that does not need whole cores on a node with too few free threads',
    pod: podOf('4'),
    fixture: { nodes: { n1: statusOf({ cpuManager: { policy: 'static' }, assignments: owner('1-5,9-14') }) } },
    refused: /too few free CPUs/,
  },
  {
    name: 'two physnets on different NUMA nodes, however many CPUs are free',
    pod: podOf('4', [PHYSNET0, PHYSNET1]),
    refused: /the kubelet cannot split it over the NUMA nodes of its networks/,
  },
  {
    name: 'two physnets on different NUMA nodes, one of them full, for the same reason',
    pod: podOf('4', [PHYSNET0, PHYSNET1]),
    fixture: { nodes: { n1: statusOf({ assignments: owner('4-6,12-14') }) } },
    refused: /the kubelet cannot split it over the NUMA nodes of its networks/,
  },
  {
    name: 'a pod that is larger than the empty NUMA node of its physnet',
    pod: podOf('8', [PHYSNET0]),
    refused: /larger than the NUMA nodes of its networks/,
  },
  {
    name: 'a physnet bonded over both NUMA nodes',
    pod: podOf('4', [PHYSNET1]),
    fixture: {
      nodes: { n1: statusOf({ assignments: owner('4-6,12-14'), physnets: [{ name: 'physnet1', cells: '0-1' }] }) },
    },
  },
  {
    name: 'a physnet that the node does not have',
    pod: podOf('4', ['physnet.plumbline.dev/elsewhere']),
    refused: /physnet elsewhere is not on the node/,
  },
  {
    name: 'a pod that needs CPUs of a bound pod that the report does not show yet',
    pod: podOf('8'),
    fixture: {
      bound: [{ node: 'n1', pod: withUid(podOf('8'), 'bound') }],
    },
    refused: /too few free whole cores/,
  },
  {
    name: 'a pod next to a bound pod that the report shows and that counts once',
    pod: podOf('4'),
    fixture: {
      nodes: { n1: statusOf({ assignments: [{ podUID: 'bound', container: 'compute', cpus: '1-4,9-12' }] }) },
      bound: [{ node: 'n1', pod: withUid(podOf('8'), 'bound') }],
    },
  },
  {
    name: 'a dead DPU',
    pod: podOf('4'),
    fixture: { dpus: { n1: dead } },
    refused: /DPU not ready: dead, last renewal 60 s ago/,
  },
  { name: 'a live DPU', pod: podOf('4'), fixture: { dpus: { n1: { ready: true, state: 'alive', age: 3 } } } },
  {
    name: 'a host-network pod on a node with a dead DPU',
    pod: { ...podOf('4'), spec: { ...podOf('4').spec, hostNetwork: true } },
    fixture: { dpus: { n1: dead } },
  },
  { name: 'a DaemonSet pod on a node with a dead DPU', pod: daemonPod(podOf('4')), fixture: { dpus: { n1: dead } } },
  {
    name: 'a node that does not report, under refuse',
    pod: podOf('4'),
    fixture: { nodes: { n1: undefined } },
    refused: /does not report its topology/,
  },
  {
    name: 'a node that does not report, under count-check',
    pod: podOf('4'),
    fixture: { nodes: { n1: undefined }, policy: 'count-check' },
  },
  {
    name: 'a kubelet version that is not predicted, under refuse',
    pod: podOf('4'),
    fixture: { nodes: { n1: statusOf({ kubeletVersion: 'v1.99.0' }) } },
    refused: /kubelet v1\.99\.0 is not predicted/,
  },
  {
    name: 'a kubelet version that is not predicted, under count-check',
    pod: podOf('4'),
    fixture: { nodes: { n1: statusOf({ kubeletVersion: 'v1.99.0' }) }, policy: 'count-check' },
  },
  {
    name: 'a node with too few CPUs by count, under count-check',
    pod: podOf('4'),
    fixture: {
      nodes: { n1: statusOf({ kubeletVersion: 'v1.99.0', assignments: owner('1-6,9-14') }) },
      policy: 'count-check',
    },
    refused: /too few free whole cores/,
  },
  {
    name: 'a node with a silent agent, under refuse',
    pod: podOf('4'),
    fixture: { flags: { n1: 'stale' } },
    refused: /agent has stopped reporting/,
  },
  {
    name: 'a node with a silent agent, under count-check',
    pod: podOf('4'),
    fixture: { flags: { n1: 'stale' }, policy: 'count-check' },
  },
  {
    name: 'a node with a silent agent and too few CPUs in its last report, under count-check',
    pod: podOf('4'),
    fixture: {
      nodes: { n1: statusOf({ assignments: owner('1-6,9-14') }) },
      flags: { n1: 'stale' },
      policy: 'count-check',
    },
    refused: /agent has stopped reporting/,
  },
  {
    name: 'a node where dra.cpu gives CPUs to claims',
    pod: podOf('4'),
    fixture: { flags: { n1: 'draCpu' }, policy: 'count-check' },
    refused: /dra\.cpu gives exclusive CPUs to claims only/,
  },
  {
    name: 'reserved CPUs that split a core, of which the kubelet distributes single threads',
    pod: podOf('4'),
    fixture: {
      nodes: {
        n1: statusOf({
          reserved: '0,6',
          cpuManager: {
            policy: 'static',
            options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'true' },
          },
        }),
      },
    },
    refused: /reserved CPUs of the node split a core/,
  },
  {
    name: 'a pod that needs whole cores on a hybrid host with 24 CPUs and 16 cores',
    pod: annotated(podOf('4')),
    fixture: {
      nodes: {
        n1: statusOf({
          cells: [{ id: 0, cpus: '0-23' }],
          cores: [
            ...Array.from({ length: 8 }, (_, i) => `${2 * i},${2 * i + 1}`),
            '16',
            '17',
            '18',
            '19',
            '20',
            '21',
            '22',
            '23',
          ],
          reserved: '0,1',
          cpuManager: { policy: 'static' },
          physnets: [],
          tunnel: undefined,
        }),
      },
    },
    refused: /cores of different sizes/,
  },
  {
    name: 'a pod with an init container, on a node with room for one of its containers',
    pod: withInit(podOf('4'), '4'),
    fixture: { nodes: { n1: statusOf({ assignments: owner('1-5,9-13') }) } },
    refused: /too few free whole cores/,
  },
  {
    name: 'a pod with an init container, on a node with room for both containers',
    pod: withInit(podOf('4'), '4'),
    fixture: { nodes: { n1: statusOf({ assignments: owner('1-3,9-11') }) } },
  },
  {
    name: 'an annotated launcher that the webhook missed, on a full-pcpus-only node',
    pod: annotated(podOf('9')),
    refused: /SMT Alignment Error/,
  },
  {
    name: 'an annotated launcher that the webhook missed, on a plain static node',
    pod: annotated(podOf('9')),
    fixture: { nodes: { n1: statusOf({ cpuManager: { policy: 'static' } }) } },
  },
  {
    name: 'a pod without a device on a node with a dead DPU, where only attached pods count',
    pod: podOf('4', ['devices.kubevirt.io/kvm']),
    fixture: { dpus: { n1: dead }, nodes: { n1: statusOf() }, dpuScope: 'attached' },
  },
  {
    name: 'a pod with a device on a node with a dead DPU, where only attached pods count',
    pod: podOf('4', ['openshift.io/dpu_vfs']),
    fixture: { dpus: { n1: dead }, nodes: { n1: statusOf() }, dpuScope: 'attached' },
    refused: /DPU not ready: dead, last renewal 60 s ago/,
  },
  {
    name: 'a dpu-host node without a Lease',
    pod: podOf('4'),
    fixture: { dpus: { n1: { ready: true, state: 'unknown', age: undefined } }, nodes: { n1: statusOf() } },
  },
  {
    name: 'a pod on the shared pool',
    pod: podOf('1500m'),
    fixture: { nodes: { n1: statusOf({ assignments: owner('1-7,9-15') }) } },
  },
];

describe('filter', () => {
  for (const { name, pod, fixture, refused } of CASES) {
    it(`${refused === undefined ? 'passes' : 'refuses'} ${name}`, () => {
      const { filter, notified } = extenderOf(fixture);
      const { NodeNames, FailedNodes, FailedAndUnresolvableNodes } = filter(pod);
      // FailedNodes is always empty, because preemption cannot help.
      assert.deepEqual(FailedNodes, {});
      if (refused === undefined) {
        assert.deepEqual([NodeNames, FailedAndUnresolvableNodes], [['n1'], {}]);
        assert.ok(!notified.includes('waits pod-uid'));
        return;
      }
      assert.deepEqual(NodeNames, []);
      assert.match(FailedAndUnresolvableNodes['n1'] ?? '', refused);
      assert.ok(notified.includes('waits pod-uid'));
    });
  }

  it('returns a node once if it is offered twice, in this call and in the next', () => {
    const { filter } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    for (const uid of ['a', 'b']) {
      assert.deepEqual(filter(withUid(podOf('500m'), uid), ['n1', 'n2', 'n1']).NodeNames, ['n1', 'n2']);
    }
    assert.deepEqual(filter(withUid(podOf('12'), 'c'), ['n1', 'n1']).NodeNames, ['n1']);
  });

  it('only counts CPUs for a stale report under --unpredictable count-check: the NUMA nodes may have room by now', () => {
    const { filter, state } = extenderOf({
      nodes: {
        n1: statusOf({
          assignments: owner('4,12'),
          topologyManager: { policy: 'single-numa-node', scope: 'container' },
        }),
      },
      flags: { n1: 'stale' },
      policy: 'count-check',
    });
    assert.deepEqual(filter(podOf('8')).NodeNames, ['n1']);
    state.setFlag('n1', 'stale', false);
    assert.deepEqual(filter(podOf('8')).NodeNames, []);
  });

  it('accepts a node that has a report but no Node yet', () => {
    const { filter, state } = extenderOf({ nodes: { n1: undefined } });
    state.reportChanged('reports', statusOf());
    assert.deepEqual(filter(podOf('4'), ['reports']).NodeNames, ['reports']);
    assert.deepEqual(filter(podOf('4'), ['other']).FailedAndUnresolvableNodes, { other: 'node is not known yet' });
  });

  it('ignores a dead Lease of a node that is not a DPU host', () => {
    const { filter, state } = extenderOf();
    state.setFlag('n1', 'dpuDead', true);
    assert.deepEqual(filter(podOf('4')).NodeNames, ['n1']);
    state.nodeChanged('n1', { dpuHost: true });
    assert.deepEqual(filter(podOf('4')).NodeNames, []);
  });

  const QUARANTINED = 'node’s report is quarantined; see its Events';
  for (const [status, what] of [
    [statusOf(), 'exclusive CPUs'],
    [statusOf({ cpuManager: { policy: 'none' } }), 'shared CPUs'],
  ] as const) {
    it(`ignores a quarantined report of ${what}: the policy decides`, () => {
      const quarantined = (policy: 'refuse' | 'count-check') => {
        const { filter, state } = extenderOf({ nodes: { n1: status }, policy });
        state.nodeChanged('n1', { dpuHost: false, cpus: 4 });
        const { NodeNames, FailedAndUnresolvableNodes } = filter(podOf('64'));
        return { NodeNames, FailedAndUnresolvableNodes };
      };
      assert.deepEqual(quarantined('refuse'), { NodeNames: [], FailedAndUnresolvableNodes: { n1: QUARANTINED } });
      assert.deepEqual(quarantined('count-check'), { NodeNames: ['n1'], FailedAndUnresolvableNodes: {} });
    });
  }

  it('refuses a node whose agent has refused a pod with equal needs, until its report changes and only for such pods', () => {
    const refusals = [
      {
        namespace: 'default',
        podName: 'stuck',
        podUID: 'stuck',
        container: 'compute',
        message: 'CPUs 1-2 are elsewhere',
      },
    ];
    const { filter, see, state } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    const stuck = withUid(podOf('4'), 'stuck');
    see({ ...stuck, spec: { ...stuck.spec, nodeName: 'n1' } });
    state.reportChanged('n1', statusOf({ refusals }));
    const ask = (cpu: string) => filter(withUid(podOf(cpu), 'asks')).FailedAndUnresolvableNodes;
    assert.deepEqual(ask('4'), { n1: 'the node’s agent has refused such a pod' });
    assert.deepEqual(ask('6'), {});
    state.reportChanged('n1', statusOf({ refusals }));
    assert.deepEqual(Object.keys(ask('4')), ['n1']);
    state.reportChanged('n1', statusOf({ assignments: [{ podUID: 'other', container: 'compute', cpus: '7,15' }] }));
    assert.deepEqual(ask('4'), {});
  });

  it('returns each of more than a thousand nodes once, even if each is named twice', () => {
    const names = Array.from({ length: 1500 }, (_, i) => `n${i}`);
    const { filter } = extenderOf({ nodes: Object.fromEntries(names.map((name) => [name, undefined])) });
    assert.deepEqual(filter(podOf('500m'), [...names, ...names]).NodeNames, names);
  });

  it('prefers a node without pods in flight to an equally full node', () => {
    const { filter } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() }, answers: 1 });
    assert.deepEqual(filter(withUid(podOf('4'), 'a')).NodeNames, ['n1']);
    assert.deepEqual(filter(withUid(podOf('4'), 'b')).NodeNames, ['n2']);
  });

  it('prefers a node where the pod uses all networks', () => {
    const only = (name: string) => statusOf({ physnets: [{ name, cells: '0-1' }] });
    const both = statusOf({
      physnets: [
        { name: 'physnet1', cells: '0-1' },
        { name: 'x', cells: '0' },
      ],
    });
    const nodes = { both, only: only('physnet1') };
    const { filter } = extenderOf({ nodes, answers: 1 });
    assert.deepEqual(filter(podOf('4', [PHYSNET1])).NodeNames, ['only']);
  });

  it('lists each of many rejected nodes exactly once, with at most 8 texts', () => {
    const nodes = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [
        `n${i}`,
        i % 3 === 0 ? statusOf() : statusOf({ assignments: owner(i % 3 === 1 ? '1-7,9-15' : '1-6,9-14') }),
      ]),
    );
    const offered = [...Object.keys(nodes), 'unknown'];
    const { NodeNames, FailedAndUnresolvableNodes } = extenderOf({ nodes }).filter(podOf('4'), offered);
    assert.equal(NodeNames.length, 16, 'as many as are answered');
    for (const name of NodeNames) assert.equal(Number(name.slice(1)) % 3, 0);
    const rejected = offered.filter((_, i) => i === 1000 || i % 3 !== 0);
    assert.deepEqual(Object.keys(FailedAndUnresolvableNodes).sort(), rejected.sort());
    assert.ok(new Set(Object.values(FailedAndUnresolvableNodes)).size <= 8);
  });

  it('uses at most 8 texts if every DPU has been silent for a different time', () => {
    const names = Array.from({ length: 1000 }, (_, i) => `n${i}`);
    const dpus = Object.fromEntries(names.map((name, i) => [name, { ...dead, age: 50 + i }]));
    const { FailedAndUnresolvableNodes } = extenderOf({ nodes: {}, dpus }).filter(podOf('4'), names);
    const texts = new Set(Object.values(FailedAndUnresolvableNodes));
    assert.equal(Object.keys(FailedAndUnresolvableNodes).length, 1000);
    assert.ok(texts.size <= 8 && [...texts].every((text) => text.startsWith('DPU not ready')), [...texts].join('; '));
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
    const nodes = {
      n1: full,
      ...Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, full])),
      n2: statusOf(),
    };
    assert.deepEqual(found({ nodes }, ['n1']), ['neverOffered pod-uid n2']);
    assert.deepEqual(found({ nodes }, ['n1', 'n2']), [], 'an offered node accepts the pod');
    assert.deepEqual(found({ nodes }, Object.keys(nodes).slice(0, -1), podOf('14')), ['neverOffered pod-uid n2']);
    assert.deepEqual(found({ nodes }, Object.keys(nodes), podOf('16')), []);
  });

  it('is found if it accepts the pod by its number of CPUs, because its report is stale', () => {
    const nodes = { n1: full, n2: statusOf() };
    const fixture = { nodes, flags: { n2: 'stale' }, policy: 'count-check' } as const;
    assert.deepEqual(found(fixture, ['n1']), ['neverOffered pod-uid n2']);
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

  it('is searched for on exactly 32 nodes that the coarse filter passes', () => {
    const apart = statusOf({
      topologyManager: { policy: 'single-numa-node', scope: 'container' },
      assignments: owner('7,15'),
    });
    for (const [others, expected] of [
      [31, ['neverOffered pod-uid z']],
      [32, []],
    ] as const) {
      const nodes = Object.fromEntries(Array.from({ length: others }, (_, i) => [`n${i}`, apart]));
      assert.deepEqual(found({ nodes: { n: apart, ...nodes, z: statusOf() } }, ['n'], podOf('10')), expected);
    }
  });
});

describe('prioritize', () => {
  it('returns whole numbers from 0 to 10, and more for a fuller node', () => {
    const nodes = { empty: statusOf(), half: statusOf({ assignments: owner('1-3,9-11') }) };
    const { extender } = extenderOf({ nodes });
    const names = ['empty', 'half'];
    const priorities = extender.prioritize({ pod: podOf('4'), names, nodes: undefined });
    const score = Object.fromEntries(priorities.map(({ Host, Score }) => [Host, Score]));
    for (const value of Object.values(score)) assert.ok(Number.isInteger(value) && value >= 0 && value <= 10);
    assert.ok((score['half'] ?? 0) > (score['empty'] ?? 0));
  });

  it('returns nodes with a preferred network first, with a higher score than any number of nodes without it', () => {
    const without = Array.from({ length: 30 }, (_, i) => [`bare-${i}`, statusOf({ physnets: [] })] as const);
    const far = statusOf({
      assignments: owner('1'),
      physnets: [
        { name: 'physnet1', cells: '1' },
        { name: 'x', cells: '0' },
      ],
    });
    const near = statusOf({
      assignments: owner('1'),
      physnets: [
        { name: 'physnet1', cells: '0' },
        { name: 'x', cells: '0' },
      ],
    });
    const nodes = Object.fromEntries([...without, ['far', far], ['near', near]]);
    const { extender, filter } = extenderOf({ nodes, answers: 4 });
    const pod = podOf('4');
    const wish = { 'plumbline.dev/placement': JSON.stringify({ preferred: [PHYSNET1] }) };
    const preferring = { ...pod, metadata: { ...pod.metadata, annotations: wish } };
    const { NodeNames } = filter(preferring);
    assert.ok(NodeNames.includes('near') && NodeNames.includes('far'), `${NodeNames}`);
    const priorities = extender.prioritize({ pod: preferring, names: NodeNames, nodes: undefined });
    const score = Object.fromEntries(priorities.map(({ Host, Score }) => [Host, Score]));
    const bare = priorities.filter(({ Host }) => Host.startsWith('bare')).map(({ Score }) => Score);
    assert.ok(score['near']! > score['far']! && score['far']! > Math.max(...bare), JSON.stringify(score));
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

  it('returns a node with both preferred networks before a node that lacks one', () => {
    const lacking = statusOf({ physnets: [{ name: 'physnet0', cells: '0' }] });
    const wish = { 'plumbline.dev/placement': JSON.stringify({ preferred: [PHYSNET0, PHYSNET1] }) };
    const pod = podOf('4');
    const preferring = { ...pod, metadata: { ...pod.metadata, annotations: wish } };
    const { filter } = extenderOf({ nodes: { lacking, both: statusOf() }, answers: 1 });
    assert.deepEqual(filter(preferring).NodeNames, ['both']);
  });

  it('returns no scores for a pod without exclusive CPUs, because all nodes are equal for it', () => {
    const { extender } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    const names = ['n1', 'n2'];
    assert.deepEqual(extender.prioritize({ pod: podOf('500m'), names, nodes: undefined }), []);
  });
});
