import assert from 'node:assert/strict';
import type { Pod, VirtualMachineInstance } from '../../sandbox/objects.ts';
import { launcherPod } from '../../sandbox/virt-controller/launcher-pod.ts';
import { realLaunchers } from '../support/real-launchers.ts';
import { placedBy } from '../support/rendered-launcher.ts';

/** test/kubevirt asks the real virt-controller the same. */
describe('virt-controller’s stand-in renders launchers as the real one has', () => {
  for (const { case: name, vmi, launcher } of realLaunchers()) {
    it(name, () => {
      const rendered = placedBy(launcherPod(vmi as unknown as VirtualMachineInstance));
      const real = placedBy(launcher as unknown as Pod);
      // The network of a binding plugin is in KubeVirt's CR, which the stand-in has none of.
      assert.deepEqual(rendered, name.startsWith('binding') ? { ...real, networks: [] } : real);
    });
  }
});
