import assert from 'node:assert/strict';
import { decide } from '../../../model/admission/decide.ts';
import type { PodFacts } from '../../../model/admission/facts.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../../model/names.ts';
import { NETWORKS_ANNOTATION } from '../../../model/networks/attachments.ts';
import { nadFacts } from '../../../model/networks/nad.ts';
import { patchFor } from '../../../webhook/pods/patch.ts';
import { ALIGNED, ANNOTATED, cluster, container, found, launcher, ordinary } from './facts.ts';

const NEAR = 'near.plumbline.dev/east';
const PREFERS = { [NETWORKS_ANNOTATION]: 'east', [NUMA_AFFINITY_ANNOTATION]: '{"east":"preferred"}' };
const OURS = { scheduler: { schedulerName: 'plumbline-scheduler', away: undefined } };
const annotations = { ...ANNOTATED, ...PREFERS };
const WEST = JSON.stringify({ type: 'ovn-k8s-cni-overlay', topology: 'localnet', physicalNetworkName: 'west' });
const { networks } = cluster();
const TWO_NETWORKS = cluster(undefined, {
  networks: {
    ...networks,
    reported: { physnets: new Set(['east', 'west']), tunnel: false },
    definitions: new Map([...networks.definitions, ['ns/west', nadFacts({ metadata: {}, spec: { config: WEST } })]]),
  },
});
/** A launcher on the network east; its VMI has the same annotations. */
function preferring(pod: Parameters<typeof launcher>[0] = {}, more: Parameters<typeof launcher>[1] = {}) {
  const own = { ...annotations, ...pod.annotations };
  const owner = found(TWO_NETWORKS);
  assert.ok(owner.kind === 'found');
  const vmi = { ...owner.vmi, metadata: { annotations: own } };
  return launcher({ ...pod, annotations: own }, { ...OURS, owner: { ...owner, vmi }, ...more });
}
const compute = (limits: Record<string, string> = {}) => container('compute', '9', '9', limits);

/** Plumbline's resources that the pod gets, or how it is refused. */
function resourcesOf(facts: PodFacts): string {
  const decision = decide(facts);
  if (decision.outcome === 'refused') return `${decision.code} ${decision.reason}`;
  if (decision.outcome === 'unchanged') return decision.outcome;
  return decision.changes.containers.flatMap(({ resources }) => resources).join(' ');
}

describe('a preferred network that the pod requests as a hint', () => {
  it('is set for a launcher and for an ordinary pod', () => {
    assert.equal(resourcesOf(preferring()), NEAR);
    assert.equal(
      resourcesOf(ordinary({ annotations: { ...ALIGNED, ...PREFERS } }, OURS)),
      `plumbline.dev/placed ${NEAR}`,
    );
  });

  it('is unchanged in a second pass', () => {
    const again = preferring({ containers: [compute({ [NEAR]: '1' })] });
    assert.equal(resourcesOf(again), NEAR);
  });

  const settings = { ...launcher().settings, preferredHints: false };
  const nowhere = { schedulerName: '', away: undefined };
  const without: [what: string, facts: PodFacts][] = [
    ['turned off', preferring({}, { settings })],
    ['Plumbline’s scheduler is missing', preferring({}, { scheduler: nowhere })],
    ['another scheduler, which would count the resource', preferring({ schedulerName: 'volcano' })],
    [
      'a network that is known only by name',
      preferring({ annotations: { [NUMA_AFFINITY_ANNOTATION]: '{"east":"none"}' } }),
    ],
    [
      'a device of another plugin, whose NUMA node could contradict it',
      preferring({ containers: [compute({ 'nvidia.com/gpu': '1' })] }),
    ],
    [
      'a sidecar with CPUs of its own, which the hint would not align',
      preferring({ containers: [compute(), container('sidecar', '1')] }),
    ],
  ];
  for (const [what, facts] of without) {
    it(`is absent: ${what}`, () => assert.equal(resourcesOf(facts), ''));
  }

  it('is removed if a later webhook adds a contradicting device or another scheduler', () => {
    const limits = { [NEAR]: '1' };
    const later = [
      preferring({ containers: [compute({ ...limits, 'intel.com/vf': '1' })] }),
      preferring({ containers: [compute(limits)], schedulerName: 'volcano' }),
    ];
    for (const facts of later) {
      const decision = decide(facts);
      assert.ok(decision.outcome === 'changed', JSON.stringify(decision));
      const raw = { metadata: { ...facts.pod.metadata }, spec: { ...facts.pod.spec } };
      const removed = patchFor(raw, { ...decision.changes, annotations: {} }).filter(({ op }) => op === 'remove');
      assert.deepEqual(
        removed.map(({ path }) => path),
        ['limits', 'requests'].map((side) => `/spec/containers/0/resources/${side}/near.plumbline.dev~1east`),
      );
    }
  });

  it('is absent if a second network, required or preferred, may be on another NUMA node', () => {
    const two = { [NETWORKS_ANNOTATION]: 'east,west' };
    const both = '{"east":"preferred","west":"preferred"}';
    assert.equal(resourcesOf(preferring({ annotations: { ...two, [NUMA_AFFINITY_ANNOTATION]: both } })), '');
    assert.equal(resourcesOf(preferring({ annotations: two })), 'physnet.plumbline.dev/west');
  });

  it('is absent for a guest that sees the NUMA nodes, to which its memory is bound', () => {
    const { owner } = preferring();
    assert.ok(owner.kind === 'found');
    const { domain } = owner.vmi.spec;
    const cpu = { ...domain.cpu, numa: { guestMappingPassthrough: {} } };
    const vmi = { ...owner.vmi, spec: { ...owner.vmi.spec, domain: { ...domain, cpu } } };
    assert.equal(resourcesOf(preferring({}, { owner: { ...owner, vmi } })), '');
  });

  it('is refused if someone else sets it or requests more', () => {
    const refused = /^403 .*near\.plumbline\.dev\/east/;
    const forged = [compute({ [NEAR]: '1' })];
    assert.match(resourcesOf(launcher({ containers: forged }, OURS)), refused);
    assert.match(resourcesOf(preferring({ containers: [compute({ [NEAR]: '9' })] })), refused);
    assert.match(resourcesOf({ kind: 'other', pod: ordinary({ annotations: {}, containers: forged }).pod }), refused);
  });
});
