import assert from 'node:assert/strict';
import type { KubePod, KubeVmi } from '../../../sandbox/objects.ts';
import { renderLauncherPod } from '../../../sandbox/virt-controller/launcher-pod.ts';
import { placedBy } from '../../support/rendered-launcher.ts';
import { realLaunchers, vector } from '../../support/vectors.ts';

/** test/kubevirt runs the same checks with the real virt-controller. */
describe('the stand-in of virt-controller renders launchers like the real one', () => {
  for (const { case: name, vmi, launcher } of realLaunchers()) {
    it(name, () => {
      const rendered = placedBy(renderLauncherPod(vmi as unknown as KubeVmi));
      const real = placedBy(launcher as unknown as KubePod);
      // The network of a binding plugin is in KubeVirt's CR, which the stand-in does not have.
      assert.deepEqual(rendered, name.startsWith('binding') ? { ...real, networks: [] } : real);
    });
  }

  it('with the owner, labels and annotations of a real one', () => {
    const { metadata } = renderLauncherPod(vector<KubeVmi>('vmi.json'));
    const real = vector<KubePod>('virt-launcher-pod.admission.json').metadata;
    assert.deepEqual(metadata.ownerReferences, real.ownerReferences);
    assert.deepEqual([metadata.name, metadata.generateName], ['', real.generateName]);
    for (const key of ['kubevirt.io', 'kubevirt.io/created-by', 'vm.kubevirt.io/name', 'app']) {
      assert.equal(metadata.labels?.[key], real.labels?.[key], key);
    }
    for (const key of ['kubevirt.io/CPUManagerPolicyBetaOptions', 'kubevirt.io/domain']) {
      assert.equal(metadata.annotations?.[key], real.annotations?.[key], key);
    }
    assert.equal(metadata.annotations?.['kubevirt.io/latest-observed-api-version'], undefined);
    assert.match(metadata.annotations?.['k8s.v1.cni.cncf.io/networks'] ?? '', /"interface":"pod[0-9a-f]{11}"/);
  });
});
