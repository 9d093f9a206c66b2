import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { extenderOf, onNode, podOf, statusOf, withUid } from '../extender-fixture.ts';

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
    const { NodeNames, FailedAndUnresolvableNodes } = filter(VM);
    assert.deepEqual(NodeNames, []);
    assert.match(FailedAndUnresolvableNodes['n1'] ?? '', /gives no exclusive CPUs/);
  });

  it('take more CPUs than the report has free, also under count-check and while their agent is silent', () => {
    for (const fixture of [{}, { policy: 'count-check' }, { flags: { n1: 'stale' } }] as const) {
      assert.deepEqual(extenderOf({ nodes: { n1: SHARED }, ...fixture }).filter(podOf('64')).NodeNames, ['n1']);
    }
  });

  it('are all returned, in addition to the usual number of nodes where the pod would own its CPUs', () => {
    const nodes = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`n${i}`, i < 20 ? SHARED : statusOf({ cpuManager: { policy: 'static' } })]),
    );
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
    const { state } = extenderOf({
      nodes: { n1: undefined },
      policy: 'count-check',
      bound: [{ node: 'n1', pod: withUid(podOf('4'), 'early') }],
    });
    assert.equal(state.reservations.size, 1);
    state.reportChanged('n1', SHARED);
    assert.equal(state.reservations.size, 0);
  });
});
