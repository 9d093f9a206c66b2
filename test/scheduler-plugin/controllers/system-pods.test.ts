import assert from 'node:assert/strict';
import { extenderOf, onNode, owned, podOf, statusOf, viewOf, withUid } from '../extender-fixture.ts';

const DEAD = { ready: false, state: 'dead', age: 60 } as const;
const STATIC_UID = '0123456789abcdef0123456789abcdef';
/** The mirror of a static pod as the kubelet creates it: the API server gives it a different uid. */
const mirror = (hash = STATIC_UID) =>
  withUid(podOf('4'), 'mirror-uid', {
    namespace: 'kube-system',
    annotations: { 'kubernetes.io/config.hash': hash, 'kubernetes.io/config.mirror': hash },
  });

describe('system pods on a node with a dead DPU', () => {
  const cases: [namespace: string, passes: boolean][] = [
    ['kube-system', true],
    ['ovn-kubernetes', true],
    ['plumbline-system', true],
    ['default', false],
  ];
  for (const [namespace, passes] of cases) {
    it(`${namespace}: ${passes ? 'are accepted, because the CNI gate lets them pass' : 'are refused'}`, () => {
      const { filter } = extenderOf({ dpus: { n1: DEAD } });
      const { NodeNames } = filter(withUid(podOf('500m'), 'pod', { namespace }));
      assert.deepEqual(NodeNames, passes ? ['n1'] : []);
    });
  }
});

describe('static pods', () => {
  const shown = statusOf({ assignments: [owned(STATIC_UID, '1-2,9-10')] });

  it('have a reservation until the report shows them', () => {
    const { state, see, gone } = extenderOf({ nodes: { n1: statusOf() } });
    const bound = onNode(mirror());
    see(bound, { phase: 'Running' });
    assert.equal(state.reservations.assumedOn('n1').length, 1);
    state.reportChanged('n1', shown);
    assert.equal(state.reservations.assumedOn('n1').length, 0);
    gone(bound);
    assert.equal(state.reservations.size, 0);
  });

  it('have the annotated uid only if it has the format that the kubelet writes', () => {
    for (const hash of ['', 'vm-a', '6b0a2c6e-9df1-4f3c-8d35-9be1a3a7d3c1', STATIC_UID.toUpperCase()]) {
      assert.equal(viewOf(mirror(hash))?.kubeletUid, 'mirror-uid', hash);
    }
    assert.equal(viewOf(mirror())?.kubeletUid, STATIC_UID);
  });
});
