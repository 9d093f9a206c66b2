import assert from 'node:assert/strict';
import { denialOf, mutationOf, podVector, requestFor, validationOf, vmiVector } from '../launcher-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
/** A launcher on shared CPUs whose VM has two vCPUs. */
function launcher(mask: string) {
  const pod = podVector();
  delete pod.metadata.annotations['kubevirt.io/CPUManagerPolicyBetaOptions'];
  delete pod.metadata.annotations['k8s.v1.cni.cncf.io/networks'];
  pod.metadata.annotations[MASK] = mask;
  const { resources } = pod.spec.containers[0]!;
  resources.requests['cpu'] = '200m';
  delete resources.limits['cpu'];
  const vmi = vmiVector((one) => {
    one.metadata.annotations = { [MASK]: mask };
    one.spec.domain.cpu = { cores: 2, numa: undefined };
  });
  return { pod, lookUpVmi: async () => ({ kind: 'found', vmi }) as const };
}

describe('the launcher of a VM with a CPU mask', () => {
  for (const [what, mask, message] of [
    ['with an unreadable mask', '1::2', /annotation plumbline\.dev\/cpu-mask: CPU mask "1::2": entry 2 .* is empty/],
    ['with more entries than vCPUs', '0:1:2', /entries for 3 vCPUs, but the VM has 2/],
  ] as const) {
    it(`${what} is refused with the reason`, async () => {
      const { pod, lookUpVmi } = launcher(mask);
      const denial = denialOf(await mutationOf({ lookUpVmi })(requestFor(pod)));
      assert.equal(denial.code, 422);
      assert.match(denial.message, message);
      assert.equal((await validationOf({ lookUpVmi })(requestFor(pod))).allowed, false);
    });
  }
});
