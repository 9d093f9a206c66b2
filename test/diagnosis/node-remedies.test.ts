import assert from 'node:assert/strict';
import type { NodeGroup, VmFacts } from '../../diagnosis/facts.ts';
import { nodeRemedies } from '../../diagnosis/node-remedies.ts';
import { commandText, kubectl, placeAgain, plumbline, remedy, remedyLines, virtctl } from '../../diagnosis/remedies.ts';
import { launcher, remedyText, VM } from './fixture.ts';

const group = (kind: NodeGroup['kind'], more: Partial<NodeGroup> = {}): NodeGroup => {
  return { kind, text: `text of ${kind}`, count: 1, nodes: ['n1', 'n2'], detail: 'memory: 3 of 4', ...more };
};
const advice = (groups: readonly NodeGroup[], facts: Partial<VmFacts> = {}) =>
  nodeRemedies(groups, { ...VM, ...facts }).map((one) => `${one.id}: ${remedyText(one)}`);
const idsOf = (groups: readonly NodeGroup[], facts: Partial<VmFacts> = {}) =>
  nodeRemedies(groups, { ...VM, ...facts }).map(({ id }) => id);

const AFFINITY = 'plumbline.dev/numa-affinity';
const SHORT = 'on n1, which is short of 3 CPUs';
const FORMS = `make all but one of its networks "preferred" (${AFFINITY})`;

describe('remedies for a pod that needs a node', () => {
  /** A group of nodes, the id of its remedy, a part of the remedy's text, and more about the group. */
  const cases: readonly (readonly [NodeGroup['kind'], string, string, Partial<NodeGroup>?])[] = [
    ['in-flight', 'wait', 'pods in flight'],
    ['refused-by-kubelet', 'read-events', '(TopologyAffinityError)', { text: 'refused: TopologyAffinityError' }],
    ['refused-on-host', 'read-events', 'why the agent on n1 refused'],
    ['short-of', 'free-resources', 'free memory on n1: kubectl describe node n1'],
    ['too-few-whole-cores', 'free-whole-cores', `whole cores ${SHORT}: stop or migrate`, { missing: 3 }],
    ['too-few-whole-cores', 'free-whole-cores', 'whole cores on a node such as n1: stop or migrate'],
    ['too-few-cpus', 'free-whole-cores', `CPUs ${SHORT}: stop or migrate`, { missing: 3 }],
    ['no-common-node', 'free-whole-cores', `of one NUMA node ${SHORT}`, { missing: 3 }],
    ['tied-by-init', 'ask-for-less', 'give init container warm-up', { detail: 'init container warm-up: 1 CPU' }],
    ['too-large', 'ask-for-less', 'give the VM less than n1 has'],
    ['too-large', 'ask-for-less', 'less strict topologyManagerPolicy', { text: 'more than a NUMA node has' }],
    ['resources', 'free-resources', 'what is short on n1'],
    ['pages-taken', 'free-resources', 'stop what took the pages on n1 (4 GiB', { detail: '4 GiB of 1Gi pages' }],
    ['cannot-split', 'relax-networks', FORMS],
    ['may-not-span', 'relax-networks', `${FORMS}, or give the guest more CPUs`],
    ['larger-than-cells', 'ask-for-less', 'give the VM 3 fewer CPUs (on n1), its own NUMA nodes', { missing: 3 }],
    ['dpu', 'bring-dpu-back', 'kubectl -n ovn-kubernetes get lease ovn-dpu-n1 -o yaml'],
    ['polled-cpus', 'reserve-cpus', 'pmd-cpu-mask'],
    ['stale-report', 'check-agent', 'start the agent on n1 again'],
    ['no-report', 'check-agent', 'run the agent on n1: it does not report'],
    ['quarantined', 'check-agent', 'the report of n1 contradicts its Node'],
    ['unpredictable', 'set-kubelet', 'plumbline doctor kubelet'],
    ['cpu-mask', 'correct-mask', 'plumbline verify -n tenants'],
    ['cordoned', 'uncordon', 'kubectl uncordon n1'],
    ['not-ready', 'bring-node-back', 'bring n1 back: kubectl describe node n1'],
    ['hangs-kubelet', 'reserve-cpus', 'switch distribute-cpus-across-numa off'],
    ['split-reservation', 'reserve-cpus', 'reserve whole cores (reservedSystemCPUs) on n1'],
    ['offline-threads', 'bring-cpus-online', 'bring the offline CPUs online'],
    ['uneven-cores', 'other-node', 'those of n1 differ'],
    ['no-exclusive-cpus', 'set-cpu-manager', 'cpuManagerPolicy: static on n1'],
    ['dra-cpu', 'other-node', 'n1 suits the VM if it claims CPUs'],
    ['tainted', 'tolerate', 'tolerate the taint of n1'],
  ];
  for (const [kind, id, part, more] of cases) {
    it(`${kind}: ${id}: ${part}`, () => {
      const [text = '', ...others] = advice([group(kind, more)]);
      assert.ok(text.startsWith(`${id}: `) && text.includes(part), text);
      assert.deepEqual(others, []);
    });
  }

  it('dra-cpu, an ordinary pod: claims of its containers', () => {
    const [text] = advice([group('dra-cpu')], { kind: 'pod', pod: launcher() });
    assert.match(text!, /n1 suits the pod if its containers claim CPUs$/);
  });

  it('network-elsewhere: free cores there, or let the interfaces, by name, be far from them', () => {
    const free = `free-whole-cores: free cores near the network ${SHORT}: plumbline top n1`;
    const far = 'relax-networks: allow the VM to run far from the network';
    const elsewhere = [group('network-elsewhere', { missing: 3 })];
    assert.deepEqual(advice(elsewhere), [free, `${far} ("preferred" for its interface in ${AFFINITY})`]);
    const annotations = { 'plumbline.dev/placement': '{"interfaces":{"physnet.plumbline.dev/east":"net1, net2"}}' };
    const pod = launcher({ metadata: { annotations }, resources: { 'physnet.plumbline.dev/east': '2' } });
    const preferred = `${far} (${AFFINITY}: '{"net1":"preferred","net2":"preferred"}')`;
    assert.deepEqual(advice(elsewhere, { pod }), [free, preferred]);
  });

  const full = (tried: NodeGroup['tried']) => group('too-few-cpus', { tried });
  const unannotated = launcher({ metadata: { annotations: {} } });
  const farDoes = group('network-elsewhere', { tried: { emptied: false, preferred: true } });
  for (const [title, groups, expected] of [
    ['free CPUs would do', [full({ emptied: true, padded: false })], 'free-whole-cores'],
    ['only padding would do', [full({ emptied: false, padded: true })], 'add-annotation'],
    ['padding now, free CPUs later', [full({ emptied: true, padded: true })], 'free-whole-cores add-annotation'],
    ['nothing would do', [full({ emptied: false, padded: false })], 'free-whole-cores'],
    ['what was tried first', [group('tainted'), full({ emptied: true })], 'free-whole-cores tolerate'],
    ['uncordoning before what would not do', [full({ emptied: false }), group('cordoned')], 'uncordon'],
    ['far networks would do, free cores would not', [farDoes], 'relax-networks'],
  ] as const) {
    it(`in the order of whether they would work: ${title}`, () =>
      assert.equal(idsOf(groups, { pod: unannotated }).join(' '), expected));
  }

  it('too-large: the number of CPUs that was tried, not the shortage', () => {
    const [first] = advice([group('too-large', { missing: 30, tried: { emptied: false, fewerCpus: 60 } })]);
    assert.match(first ?? '', /^ask-for-less: give the VM 60 fewer CPUs \(on n1\)/);
    const [one] = advice([group('too-large', { missing: 1 })]);
    assert.match(one ?? '', /^ask-for-less: give the VM 1 fewer CPU \(on n1\)/);
  });

  it('misaligned: the annotation, unless the pod already has it', () => {
    const found = advice([group('misaligned')], { pod: launcher({ metadata: { annotations: {} } }) });
    assert.equal(found.length, 1);
    assert.match(found[0]!, /^add-annotation: opt in to whole cores: annotate /);
    assert.deepEqual(advice([group('misaligned')], { pod: launcher() }), []);
    assert.deepEqual(advice([group('misaligned')]), found);
  });

  it('misaligned, an ordinary pod: its own annotation, or a new pod if the webhook did not see it', () => {
    const of = (annotations: Record<string, string>) =>
      advice([group('misaligned')], { kind: 'pod', pod: launcher({ metadata: { annotations } }) });
    assert.deepEqual(of({ 'plumbline.dev/align': 'whole-cores' }), [
      'start-again: the webhook did not see this pod: delete it, and create it again',
    ]);
    assert.deepEqual(of({}), [
      'add-annotation: opt in to whole cores: annotate the pod with plumbline.dev/align: whole-cores and create it again',
    ]);
  });

  it('migrate: no command without a VM', () => {
    const text = 'migrate or restart it, so that it is placed again';
    assert.equal(remedyText(placeAgain(VM)), `${text}: virtctl migrate fw -n tenants`);
    assert.equal(remedyText(placeAgain({ ...VM, kind: 'pod' })), text);
    const tied = remedyText(placeAgain({ ...VM, instance: { notMigratable: 'VMI uses a PCI host devices' } }));
    assert.match(tied, /^restart it .*; KubeVirt cannot migrate it: VMI uses .*: virtctl restart fw -n tenants$/);
  });

  it('at most three, each once, in the order of the groups', () => {
    const same = group('resources');
    const groups = [group('cordoned'), same, same, group('tainted'), group('not-ready')];
    assert.deepEqual(idsOf(groups), ['uncordon', 'free-resources', 'tolerate']);
  });

  const NETWORK = group('no-such-network', { text: 'physnet x is not on the node' });

  it('names two networks that no node has together, and blames no name', () => {
    const apart = [
      group('no-such-network', { text: 'physnet x is not on the node', nodes: ['n1'] }),
      group('no-such-network', { text: 'physnet y is not on the node', nodes: ['n2'] }),
    ];
    const APART = 'no node has all of its networks (physnet x not on n1; physnet y not on n2)';
    assert.deepEqual(advice(apart), [`relax-networks: ${APART}: ${FORMS}`]);
  });

  it('names the networks that are on no node, whatever else the nodes lack', () => {
    const groups = [
      group('no-such-network', { text: 'physnet x, physnet y are not on the node', nodes: ['n1'] }),
      group('no-such-network', { text: 'physnet x is not on the node', nodes: ['n2'] }),
    ];
    assert.match(advice(groups).join(), /the network’s name: physnet x is not on any node/);
  });

  const UNSELECTED = group('not-selected', { text: 'n1 has no label x' });
  const CHECK_NETWORK =
    'check-network-name: check the network’s name: physnet x is not on any node that the pod may go to: plumbline doctor networks';
  const SELECT =
    'select-nodes: change the pod’s selector, or label a node: n1 has no label x: kubectl get nodes --show-labels';
  for (const [title, groups, expected] of [
    ['no node', [], []],
    ['a network that no node has', [NETWORK], [CHECK_NETWORK]],
    ['a network takes precedence over the selector', [UNSELECTED, NETWORK], [CHECK_NETWORK]],
    ['the selector', [UNSELECTED], [SELECT]],
    ['the first of two groups', [UNSELECTED, { ...UNSELECTED, text: 'n2 has no label y' }], [SELECT]],
    ['a node that fits', [NETWORK, group('fits')], []],
    ['a remedy on a node takes precedence', [NETWORK, group('cordoned')], advice([group('cordoned')])],
  ] as const) {
    it(`nodes that were never candidates: ${title}`, () => assert.deepEqual(advice(groups), expected));
  }
});

describe('commands', () => {
  it('can be copied and run', () => {
    assert.equal(commandText(kubectl('get', 'a/b.c-d_e:f=g@h,i+j%k')), 'kubectl get a/b.c-d_e:f=g@h,i+j%k');
    assert.equal(commandText(plumbline('x y')), "plumbline 'x y'");
    assert.equal(commandText(virtctl('')), "virtctl ''");
    assert.equal(commandText(kubectl("it's")), String.raw`kubectl 'it'\''s'`);
  });

  it('follow the text of the remedy', () => {
    assert.deepEqual(remedyLines(remedy('wait', 'wait')), ['wait']);
    const lines = remedyLines(remedy('wait', 'wait', kubectl('a'), virtctl('b')));
    assert.deepEqual(lines, ['wait', 'kubectl a', 'virtctl b']);
  });
});
