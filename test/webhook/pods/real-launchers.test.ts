import assert from 'node:assert/strict';
import { virtualMachineInstance } from '../../../kube/virtual-machines.ts';
import { FULL_PCPUS_ANNOTATION } from '../../../model/names.ts';
import { type NadFacts, nadFacts } from '../../../model/networks/nad.ts';
import type { PatchOperation } from '../../../webhook/review/admission-review.ts';
import { type RealLauncher, realLaunchers } from '../../support/real-launchers.ts';
import { vector } from '../../support/vectors.ts';
import {
  computeCpus,
  kindOf,
  localnet,
  mutationOf,
  patched,
  patchOf,
  requestFor,
  type TestPod,
  viewOf,
  withoutNotes,
} from '../launcher-fixture.ts';

/** All changes to each of these launchers, as patches, on the nodes of `reviewOf`. */
const PATCHES = vector<Readonly<Record<string, readonly PatchOperation[]>>>('launcher-patches.json');

/** `vms/dataplane0` is a localnet on physnet0, `vms/dataplane1` on physnet1; `vms/bridge` has no physnet. */
const NETWORKS: Readonly<Record<string, NadFacts>> = {
  dataplane0: localnet('physnet0'),
  dataplane1: localnet('physnet1'),
  bridge: nadFacts({ metadata: {}, spec: { config: JSON.stringify({ type: 'bridge', bridge: 'br1' }) } }),
};

/** Nodes with two threads per core that give only whole cores, with physnet0 on NUMA node 0 and physnet1 on 1. */
function reviewOf({ vmi }: RealLauncher) {
  const view = viewOf([kindOf(2, { physnets: { physnet0: '0', physnet1: '1' } })], {
    findNad: ({ name }) => NETWORKS[name],
  });
  const found = virtualMachineInstance.parse(vmi);
  const route = { schedulerName: 'plumbline-scheduler', schedulerAway: () => undefined };
  return mutationOf({ view, route, lookUpVmi: async () => ({ kind: 'found', vmi: found }) });
}

const podOf = ({ launcher }: RealLauncher) => structuredClone(launcher) as unknown as TestPod;
const requestOf = (pod: TestPod) => requestFor(pod, { namespace: 'vms' });

/** What the annotation promises, derived only from the VMI. */
function isPadded({ vmi }: RealLauncher): boolean {
  const { cpu } = (vmi.spec as { domain: { cpu: Record<string, unknown> } }).domain;
  const asks = vmi.metadata.annotations[FULL_PCPUS_ANNOTATION] !== undefined;
  return asks && cpu['dedicatedCpuPlacement'] === true && cpu['isolateEmulatorThread'] === true;
}

describe('launchers as the real KubeVirt renders them', () => {
  const launchers = realLaunchers();

  it('are 42 different launchers, each with its patch', () => {
    assert.equal(launchers.length, 42);
    assert.deepEqual(
      launchers.map((one) => one.case),
      Object.keys(PATCHES),
    );
  });

  for (const one of launchers) {
    it(`${one.case}: gets the same changes as ever, with whole cores if the VM asks and isolates its emulator`, async () => {
      const pod = podOf(one);
      const before = computeCpus(pod);
      const after = patched(pod, await reviewOf(one)(requestOf(pod)));
      assert.deepEqual(withoutNotes(after), patched(pod, { allowed: true, patch: PATCHES[one.case]! }));
      const cpus = Number(before.limit);
      const even = `${cpus + (cpus % 2)}`;
      assert.deepEqual(computeCpus(after), isPadded(one) ? { request: even, limit: even } : before);
      assert.deepEqual(patchOf(await reviewOf(one)(requestOf(after))), [], 'a second pass changes nothing');
    });
  }
});
