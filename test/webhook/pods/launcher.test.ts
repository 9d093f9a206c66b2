import assert from 'node:assert/strict';
import { DECISION_ANNOTATION, FULL_PCPUS_ANNOTATION, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { NETWORKS_ANNOTATION } from '../../../model/networks/attachments.ts';
import { launcherEventsOf } from '../../../scheduler-plugin/controllers/launcher-events.ts';
import type { VmiLookup } from '../../../webhook/cluster/cluster-facts.ts';
import type { ClusterView } from '../../../webhook/cluster/cluster-view.ts';
import {
  computeCpus,
  kindOf,
  localnet,
  mutationOf,
  patched,
  podVector,
  requestFor,
  setCpu,
  type TestPod,
  viewOf,
  vmiVector,
  withoutNotes,
} from '../launcher-fixture.ts';

describe('review of a launcher pod: CPUs', () => {
  it('pads 4 cores x 2 threads from 9 to 10 CPUs and changes nothing else of what KubeVirt wrote', async () => {
    const pod = podVector();
    const after = patched(pod, await mutationOf()(requestFor(pod)));
    assert.deepEqual(computeCpus(after), { request: '10', limit: '10' });
    setCpu(after, '9');
    delete after.metadata.annotations[DECISION_ANNOTATION];
    assert.deepEqual(after, pod);
  });

  it('leaves a hot-plug pod alone', async () => {
    const answer = await mutationOf({ lookUpVmi: () => assert.fail('looked the VMI up') })(
      requestFor(podVector('hp-volume-pod')),
    );
    assert.deepEqual(answer, { allowed: true });
  });

  for (const networks of [true, false]) {
    it(`replaces a decision and removes preferences that the tenant wrote, ${networks ? 'with' : 'without'} networks`, async () => {
      const pod = podVector();
      delete pod.metadata.annotations[FULL_PCPUS_ANNOTATION];
      if (!networks) delete pod.metadata.annotations[NETWORKS_ANNOTATION];
      pod.metadata.annotations[DECISION_ANNOTATION] = '{"cpus":64}';
      pod.metadata.annotations[PLACEMENT_ANNOTATION] = '{"spansCells":true}';
      const after = withoutNotes(patched(pod, await mutationOf()(requestFor(pod))));
      assert.equal(after.metadata.annotations[DECISION_ANNOTATION], '{"padding":0}');
      assert.equal(after.metadata.annotations[PLACEMENT_ANNOTATION], undefined);
    });
  }
});

describe('review of a launcher pod: its VMI', () => {
  it('is found by the owner reference, for any host name and labels', async () => {
    const pod = podVector();
    pod.spec.hostname = 'something-else';
    pod.metadata.labels['vm.kubevirt.io/name'] = 'something-else';
    pod.metadata.ownerReferences[0]!.name = `${'a-very.long.'.repeat(16)}name`;
    const asked: unknown[] = [];
    const lookUpVmi = async (...args: unknown[]): Promise<VmiLookup> => {
      asked.push(args.slice(0, 2));
      return { kind: 'found', vmi: vmiVector() };
    };
    await mutationOf({ lookUpVmi })(requestFor(pod));
    const { name, uid } = pod.metadata.ownerReferences[0]!;
    assert.deepEqual(asked, [['telco-east', { name, uid }]]);
  });

  for (const policy of ['annotated', 'always'] as const) {
    const asked = policy === 'always';
    it(`is ${asked ? '' : 'not '}looked up for a launcher that asks for nothing, under ${policy}`, async () => {
      const pod = podVector();
      delete pod.metadata.annotations[FULL_PCPUS_ANNOTATION];
      delete pod.metadata.annotations[NETWORKS_ANNOTATION];
      let lookups = 0;
      const lookUpVmi = async (): Promise<VmiLookup> => {
        lookups++;
        return { kind: 'unreadable', why: 'timeout' };
      };
      const answer = await mutationOf({ lookUpVmi, policy })(requestFor(pod));
      assert.deepEqual([lookups, answer.allowed], asked ? [1, false] : [0, true]);
    });
  }
});

describe('the decision about a launcher', () => {
  const recorded = async (view: ClusterView, pod: TestPod) => {
    const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
    const text = after.metadata.annotations[DECISION_ANNOTATION] ?? '';
    return { after, text, reasons: launcherEventsOf(text).map(({ type, reason }) => `${type} ${reason}`) };
  };
  const onPhysnet = viewOf([kindOf(2, { physnets: { east: '0' } }), kindOf(4)], {
    candidates: () => [kindOf(2, { physnets: { east: '0' } })],
    findNad: () => localnet('east'),
  });

  it('records each change for the extender’s Events, and the same on a second pass', async () => {
    const { after, text, reasons } = await recorded(onPhysnet, podVector());
    assert.deepEqual(reasons, [
      'Normal PaddedToWholeCores',
      'Normal NodesRestrictedByNetworks',
      'Normal NodesRestrictedByCores',
    ]);
    assert.equal((await recorded(onPhysnet, after)).text, text);
  });
});
