import assert from 'node:assert/strict';
import type { KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import type { Pod } from '../../../model/kubelet/pod-shape.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const MI = 2 ** 20;
const STATIC_MEMORY = { policy: 'Static', cells: [0, 1].map((id) => ({ id, memory: 8192 * MI })) };

/** The answer to new amounts for a pod that runs with 2 CPUs and 1Gi on a host with 8 CPUs. */
function resized(config: Partial<KubeletConfig>, after: Pod, others: readonly Pod[] = []) {
  const kubelet = predictable(simpleHost(2, 4), { topologyManager: { policy: 'best-effort' }, ...config });
  const before = pod('a', [container('c', 2)]);
  let state = kubelet.initialState();
  for (const one of [before, ...others]) {
    const admission = kubelet.admit(state, podRequestOf(one));
    assert.ok(admission.admitted);
    state = admission.state;
  }
  return kubelet.resize(state, before, after);
}

describe('model/kubelet: an in-place resize', () => {
  const moreCpu = pod('a', [container('c', 4)]);
  const moreMemory = pod('a', [container('c', 2, { memory: '2Gi' })]);
  const infeasible = (manager: string) => ({
    outcome: 'pending',
    reason: 'Infeasible',
    message: `Resize is infeasible for Guaranteed Pods alongside ${manager}`,
  });

  it('is refused completely by 1.33, even for memory only', () => {
    const refused = infeasible('CPU Manager static policy');
    assert.deepEqual(resized({ version: 'v1.33.13' }, moreCpu), refused);
    assert.deepEqual(resized({ version: 'v1.33.13' }, moreMemory), refused);
    const shared = { version: 'v1.33.13', cpuManager: { policy: 'none' }, memoryManager: STATIC_MEMORY };
    assert.deepEqual(resized(shared, moreCpu), infeasible('Memory Manager static policy'));
  });

  it('is refused since 1.34 if it changes assignments of a static manager', () => {
    for (const version of ['v1.34.9', 'v1.35.6', 'v1.36.2']) {
      assert.deepEqual(resized({ version }, moreCpu), infeasible('CPU Manager policy "static"'));
      assert.deepEqual(resized({ version }, moreMemory), { outcome: 'allocated' });
      const memoryToo = { version, memoryManager: STATIC_MEMORY };
      assert.deepEqual(resized(memoryToo, moreMemory), infeasible('Memory Manager policy "Static"'));
      assert.deepEqual(resized(memoryToo, moreCpu), infeasible('CPU Manager policy "static"'));
    }
  });

  it('for memory only waits if full-pcpus-only finds fewer free CPUs than the pod has', () => {
    const full = [pod('b', [container('c', 4)])];
    const message =
      'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, requested CPUs = 2, CPUs per core = 2';
    const deferred = { outcome: 'pending', reason: 'Deferred', message };
    for (const version of ['v1.34.9', 'v1.35.6', 'v1.36.2']) {
      assert.deepEqual(resized({ version }, moreMemory, full), deferred);
    }
  });

  it('does not affect the static managers for a pod that is not Guaranteed', () => {
    const burstable = (cpu: string): Pod => ({
      metadata: { uid: 'a' },
      spec: { containers: [{ name: 'c', resources: { requests: { cpu, memory: '1Gi' } } }] },
    });
    const kubelet = predictable(simpleHost(2, 4), { memoryManager: STATIC_MEMORY });
    assert.deepEqual(kubelet.resize(kubelet.initialState(), burstable('1'), burstable('2')), { outcome: 'allocated' });
  });

  it('without a change is accepted', () => {
    assert.deepEqual(resized({}, pod('a', [container('c', 2)])), { outcome: 'allocated' });
  });
});
