import assert from 'node:assert/strict';
import { DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { type NetworkRef, refText } from '../../../model/networks/attachments.ts';
import { parsePreferences } from '../../../model/placement/preferences.ts';
import {
  kindOf,
  localnet,
  mutationOf,
  patched,
  podVector,
  requestFor,
  viewOf,
  vmiVector,
} from '../launcher-fixture.ts';

const NETWORKS = 'k8s.v1.cni.cncf.io/networks';
const here = [kindOf(2, { physnets: { physnet1: '1' }, tunnel: '0' })];

describe('review of a launcher pod: networks', () => {
  it('adds the device of a required physnet to requests and limits, and records it', async () => {
    const pod = podVector();
    const view = viewOf(here, { findNad: () => localnet('physnet1') });
    const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
    const { requests, limits } = after.spec.containers[0]!.resources;
    assert.equal(requests['physnet.plumbline.dev/physnet1'], '1');
    assert.equal(limits['physnet.plumbline.dev/physnet1'], '1');
    assert.match(after.metadata.annotations[DECISION_ANNOTATION] ?? '', /"on":"physnet physnet1"/);
  });

  it('W13: a definition with an unknown physnet is requested once, because it may have been corrected', async () => {
    const fetched: NetworkRef[] = [];
    const fetchNad = async (ref: NetworkRef) => {
      fetched.push(ref);
      return localnet('physnet1');
    };
    const pod = podVector();
    const view = viewOf(here, { findNad: () => localnet('typo') });
    const after = patched(pod, await mutationOf({ view, fetchNad })(requestFor(pod)));
    assert.equal(after.spec.containers[0]!.resources.limits['physnet.plumbline.dev/physnet1'], '1');
    assert.deepEqual(fetched.map(refText), ['telco-east/dpdk-net-east']);
  });

  it('records for the extender the preferred networks, not the required ones, and whether the guest spans NUMA nodes', async () => {
    const findNad = ({ name }: NetworkRef) => localnet(name === 'west' ? 'physnet1' : 'elsewhere');
    const view = viewOf([kindOf(2, { physnets: { physnet1: '0' } })], { findNad });
    const placed = async (wishes: Record<string, string>) => {
      const pod = podVector();
      pod.metadata.annotations[NETWORKS] = 'east,west';
      pod.metadata.annotations[PLACEMENT_ANNOTATION] = '{"preferred":["plumbline.dev/tunnel"]}';
      const vmi = vmiVector((one) => {
        one.metadata.annotations = { 'plumbline.dev/numa-affinity': JSON.stringify(wishes) };
      });
      const lookUpVmi = async () => ({ kind: 'found', vmi }) as const;
      return patched(pod, await mutationOf({ view, lookUpVmi })(requestFor(pod))).metadata.annotations[
        PLACEMENT_ANNOTATION
      ];
    };
    const preferred = ['physnet.plumbline.dev/elsewhere'];
    const interfaces = { 'physnet.plumbline.dev/physnet1': 'net2', 'physnet.plumbline.dev/elsewhere': 'net1' };
    const text = await placed({ east: 'preferred' });
    assert.deepEqual(parsePreferences(text), { preferred, spansCells: true, interfaces, guestThreads: 1 });
    assert.equal(await placed({ east: 'none', west: 'none' }), undefined);
  });

  it('gives a VM on the shared pool no device', async () => {
    const pod = podVector();
    const { resources } = pod.spec.containers[0]!;
    resources.requests['cpu'] = '800m';
    delete resources.limits['cpu'];
    const view = viewOf(here, { findNad: () => localnet('physnet1') });
    const vmi = vmiVector((one) => delete one.spec.domain.cpu?.dedicatedCpuPlacement);
    const lookUpVmi = async () => ({ kind: 'found', vmi }) as const;
    const after = patched(pod, await mutationOf({ view, lookUpVmi })(requestFor(pod)));
    assert.equal(after.spec.containers[0]!.resources.limits['physnet.plumbline.dev/physnet1'], undefined);
  });
});
