import assert from 'node:assert/strict';
import {
  denialOf,
  mutationOf,
  patchOf,
  podVector,
  requestFor,
  setCpu,
  validationOf,
  vmiVector,
} from '../launcher-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
/** The patch of a launcher that the webhook reviewed and that needs nothing. */
const ONLY_SEEN = [{ op: 'add', path: '/metadata/annotations/plumbline.dev~1decision', value: '{"padding":0}' }];

/** A launcher on shared CPUs whose VM has this many vCPUs. */
function launcher(mask: string, { cores = 2, dedicated = false, limits = false, target = false } = {}) {
  const pod = podVector();
  if (target) pod.metadata.labels['kubevirt.io/migrationJobUID'] = 'job';
  delete pod.metadata.annotations['kubevirt.io/CPUManagerPolicyBetaOptions'];
  delete pod.metadata.annotations['k8s.v1.cni.cncf.io/networks'];
  pod.metadata.annotations[MASK] = mask;
  const { resources } = pod.spec.containers[0]!;
  if (limits) setCpu(pod, '2');
  else {
    resources.requests['cpu'] = '200m';
    delete resources.limits['cpu'];
  }
  const vmi = vmiVector((one) => {
    one.metadata.annotations = { [MASK]: mask };
    one.spec.domain.cpu = { cores, dedicatedCpuPlacement: dedicated, numa: undefined };
  });
  return { pod, lookUpVmi: async () => ({ kind: 'found', vmi }) as const };
}

describe('the launcher of a VM with a CPU mask', () => {
  const refusals: [string, Parameters<typeof launcher>, RegExp][] = [
    ['with an unreadable mask', ['1::2'], /annotation plumbline\.dev\/cpu-mask: CPU mask "1::2": entry 2 .* is empty/],
    ['with more entries than vCPUs', ['0:1:2'], /entries for 3 vCPUs, but the VM has 2/],
    ['with dedicated CPUs', ['0-1', { dedicated: true }], /dedicatedCpuPlacement are mutually exclusive/],
    ['with requests that give it exclusive CPUs', ['0-1', { limits: true }], /the kubelet gives it CPUs of its own/],
  ];
  for (const [what, options, message] of refusals) {
    it(`${what} is refused with the reason`, async () => {
      const { pod, lookUpVmi } = launcher(...options);
      const denial = denialOf(await mutationOf({ lookUpVmi })(requestFor(pod)));
      assert.equal(denial.code, 422);
      assert.match(denial.message, message);
      assert.equal((await validationOf({ lookUpVmi })(requestFor(pod))).allowed, false);
    });
  }

  for (const [mask, cores] of [
    ['0-1', 2],
    ['0:1', 2],
    ['all:1,3-5:0', 3],
    ['all', 4],
  ] as const) {
    it(`with ${mask} for ${cores} vCPUs is admitted, and records that the webhook reviewed it`, async () => {
      const { pod, lookUpVmi } = launcher(mask, { cores });
      assert.deepEqual(patchOf(await mutationOf({ lookUpVmi })(requestFor(pod))), ONLY_SEEN);
    });
  }

  it('is admitted as a migration target with more vCPUs than entries, because KubeVirt hotplugs vCPUs by migration', async () => {
    const { pod, lookUpVmi } = launcher('0:1', { cores: 3, target: true });
    assert.deepEqual(patchOf(await mutationOf({ lookUpVmi })(requestFor(pod))), ONLY_SEEN);
    assert.equal((await validationOf({ lookUpVmi })(requestFor(pod))).allowed, true);
    const unread = launcher('0:', { target: true });
    assert.match(denialOf(await mutationOf(unread)(requestFor(unread.pod))).message, /entry 2 .* is empty/);
  });

  it('is admitted with "all" and dedicated CPUs, because "all" selects no CPUs', async () => {
    const { pod, lookUpVmi } = launcher('all', { limits: true });
    assert.equal((await mutationOf({ lookUpVmi })(requestFor(pod))).allowed, true);
  });
});
