import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type Host, wholeCoresTouching } from '../../../model/host.ts';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { PodRequest } from '../../../model/kubelet/pod-request.ts';
import { cpusOf, type KubeletState } from '../../../model/kubelet/state.ts';
import { hostOf, policies, shapes } from './arbitraries.ts';
import { predictable } from './fixture.ts';

const scenario = fc.record({
  shape: shapes(16),
  policy: policies,
  reserved: fc.nat(2),
  fullPcpusOnly: fc.boolean(),
  preferUncore: fc.boolean(),
  steps: fc.array(
    fc.record({
      /** Containers of the pod to admit, init containers first. */
      containers: fc.array(fc.record({ cpus: fc.nat(6), init: fc.boolean() }), { minLength: 1, maxLength: 3 }),
      /** Removes the n-th existing pod before the admission. */
      remove: fc.option(fc.nat(5)),
    }),
    { minLength: 1, maxLength: 6 },
  ),
});

const requestOf = (
  uid: string,
  containers: readonly { readonly cpus: number; readonly init: boolean }[],
): PodRequest => ({
  uid,
  guaranteed: true,
  containers: [...containers]
    .sort((a, b) => Number(b.init) - Number(a.init))
    .map(({ cpus, init }, index) => ({
      name: `c${index}`,
      kind: init ? 'init' : 'app',
      cpus,
      devices: new Map(),
      memory: new Map(),
    })),
});

type Admitted = Extract<Admission, { admitted: true }>;
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

function kubeletOf(host: Host, reserved: CpuSet, scene: Omit<Scenario, 'shape' | 'reserved' | 'steps'>) {
  const options = {
    'full-pcpus-only': `${scene.fullPcpusOnly}`,
    'prefer-align-cpus-by-uncorecache': `${scene.preferUncore}`,
  };
  return predictable(host, {
    cpuManager: { policy: 'static', options },
    topologyManager: { policy: scene.policy },
    reserved,
  });
}

function checkAdmitted(host: Host, scene: Scenario, before: KubeletState, admission: Admitted, reserved: CpuSet) {
  const owned = cpusOf(before.assignments);
  for (const { cpus, hint } of admission.containers) {
    assert.ok(!cpus.intersects(owned), 'disjoint from what others hold');
    assert.ok(!cpus.intersects(reserved), 'never reserved CPUs');
    assert.ok(cpus.isSubsetOf(host.online));
    const splits = !wholeCoresTouching(host, reserved).equals(reserved);
    if (scene.fullPcpusOnly && !splits) assert.ok(wholeCoresTouching(host, cpus).equals(cpus), 'whole cores');
    if (scene.policy === 'single-numa-node' && hint?.length === 1 && !cpus.isEmpty) {
      assert.ok(cpus.isSubsetOf(host.cells.find(({ id }) => id === hint[0])?.cpus ?? CpuSet.EMPTY), 'inside its cell');
    }
  }
  assert.ok(
    !admission.state.defaultSet.intersects(cpusOf(admission.state.assignments)),
    'given CPUs have left the pool',
  );
  assert.ok(
    admission.state.defaultSet.union(cpusOf(admission.state.assignments)).equals(host.online),
    'no CPU is lost',
  );
}

describe('properties of admission', () => {
  it('2,000 random sequences are sound, and are undone by removal', function () {
    this.timeout(600_000);
    const counts = { admitted: 0, refused: 0 };
    fc.assert(
      fc.property(scenario, (scene) => {
        const host = hostOf(scene.shape);
        const reserved = CpuSet.of(host.cpus.slice(0, scene.reserved).map(({ id }) => id));
        const kubelet = kubeletOf(host, reserved, scene);
        const start = kubelet.initialState();
        let state = start;
        const present: string[] = [];
        scene.steps.forEach(({ remove, containers }, index) => {
          if (remove !== null && present.length > 0) {
            const [gone] = present.splice(remove % present.length, 1);
            state = kubelet.remove(state, gone ?? '');
          }
          const request = requestOf(`pod${index}`, containers);
          const admission = kubelet.admit(state, request);
          counts[admission.admitted ? 'admitted' : 'refused']++;
          if (!admission.admitted) return;
          checkAdmitted(host, scene, state, admission, reserved);
          const removed = kubelet.remove(admission.state, request.uid);
          assert.ok(removed.defaultSet.equals(state.defaultSet), 'removing restores');
          present.push(request.uid);
          state = admission.state;
        });
        for (const uid of present) state = kubelet.remove(state, uid);
        assert.ok(state.defaultSet.equals(start.defaultSet));
        assert.equal(state.assignments.size, 0);
      }),
      { numRuns: 2000 },
    );
    assert.ok(counts.admitted > 500 && counts.refused > 500, `a fair share of both: ${JSON.stringify(counts)}`);
  });
});
