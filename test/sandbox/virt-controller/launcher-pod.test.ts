import assert from 'node:assert/strict';
import type { KubePod, KubeVmi } from '../../../sandbox/objects.ts';
import { renderLauncherPod } from '../../../sandbox/virt-controller/launcher-pod.ts';
import { placedBy } from '../../support/rendered-launcher.ts';
import { realLaunchers } from '../../support/vectors.ts';

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
});
