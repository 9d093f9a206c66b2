import assert from 'node:assert/strict';
import { DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import type { NetworkRef } from '../../../model/networks/attachments.ts';
import { type NadFacts, nadFacts } from '../../../model/networks/nad.ts';
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
const overlayConfig = { type: 'ovn-k8s-cni-overlay', topology: 'layer2', name: 'n', netAttachDefName: 'ns/n' };
const overlay = nadFacts({ metadata: {}, spec: { config: JSON.stringify(overlayConfig) } });

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

  const fetches: {
    name: string;
    cached: NadFacts | undefined;
    fresh: NadFacts | undefined;
    expected: string | undefined;
    asked: string[];
    warning?: RegExp;
  }[] = [
    {
      name: 'a definition created a millisecond ago is requested once',
      cached: undefined,
      fresh: localnet('physnet1'),
      expected: 'physnet.plumbline.dev/physnet1',
      asked: ['telco-east/dpdk-net-east'],
    },
    {
      name: 'a definition with an unknown physnet is requested once, because it may have been corrected',
      cached: localnet('typo'),
      fresh: localnet('physnet1'),
      expected: 'physnet.plumbline.dev/physnet1',
      asked: ['telco-east/dpdk-net-east'],
    },
    {
      name: 'a physnet that stays unknown is admitted with a warning that names it',
      cached: localnet('typo'),
      fresh: localnet('typo'),
      expected: undefined,
      asked: ['telco-east/dpdk-net-east'],
      warning: /no node reports the physnet typo/,
    },
    {
      name: 'a known definition is not requested',
      cached: overlay,
      fresh: undefined,
      expected: 'plumbline.dev/tunnel',
      asked: [],
    },
  ];
  for (const { name, cached, fresh, expected, asked, warning } of fetches) {
    it(`W13: ${name}`, async () => {
      const calls: string[] = [];
      const fetchNad = async ({ namespace, name: called }: NetworkRef) => {
        calls.push(`${namespace}/${called}`);
        return fresh;
      };
      const pod = podVector();
      const answer = await mutationOf({ view: viewOf(here, { findNad: () => cached }), fetchNad })(requestFor(pod));
      const { limits } = patched(pod, answer).spec.containers[0]!.resources;
      assert.deepEqual(
        Object.keys(limits).filter((key) => key.includes('plumbline')),
        expected === undefined ? [] : [expected],
      );
      assert.deepEqual(calls, asked);
      if (warning !== undefined)
        assert.ok(
          answer.warnings?.some((text) => warning.test(text)),
          `${answer.warnings}`,
        );
    });
  }

  it('a physnet that the user requires and no node reports is still requested, and the warning says that the VM waits', async () => {
    const vmi = vmiVector((one) => {
      one.metadata.annotations = { 'plumbline.dev/numa-affinity': '{"dpdk-east":"required"}' };
    });
    const lookUpVmi = async () => ({ kind: 'found', vmi }) as const;
    const view = viewOf(here, { findNad: () => localnet('typo') });
    const pod = podVector();
    const answer = await mutationOf({ view, lookUpVmi })(requestFor(pod));
    const { requests, limits } = patched(pod, answer).spec.containers[0]!.resources;
    assert.deepEqual(
      [requests, limits].map((one) => one['physnet.plumbline.dev/typo']),
      ['1', '1'],
    );
    assert.ok(
      answer.warnings?.some((text) => /no node reports the physnet typo of .*; it waits until one does/.test(text)),
    );
  });

  it('W13: reads both forms of the annotation, counts duplicates once, and encodes names that are not resource names', async () => {
    const byName = new Map([
      ['telco-east/a', localnet('rack 7')],
      ['telco-east/b', localnet('physnet1')],
    ]);
    const findNad = ({ namespace, name }: NetworkRef) => byName.get(`${namespace}/${name}`);
    const view = viewOf([kindOf(2, { physnets: { physnet1: '1', 'rack 7': '0' } })], { findNad });
    for (const text of ['a,b,a', '[{"name":"a"},{"name":"b","namespace":"telco-east"},{"name":"a"}]']) {
      const pod = podVector();
      pod.metadata.annotations[NETWORKS] = text;
      const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
      const names = Object.keys(after.spec.containers[0]!.resources.limits).filter((key) => key.includes('plumbline'));
      assert.deepEqual(names.sort(), ['physnet.plumbline.dev/physnet1', 'physnet.plumbline.dev/x--7261636b2037']);
    }
  });

  it('W13: uses the primary network of a labelled namespace as the pod network', async () => {
    const findNad = ({ name }: NetworkRef) => (name === 'udn' ? localnet('physnet1') : overlay);
    const vmi = vmiVector((one) => {
      one.metadata.annotations = { 'plumbline.dev/numa-affinity': '{"default":"required","dpdk-east":"none"}' };
    });
    const ref = { namespace: 'telco-east', name: 'udn' };
    const view = viewOf(here, { findNad, primaryNetwork: () => ({ kind: 'primary', ref }) });
    const lookUpVmi = async () => ({ kind: 'found', vmi }) as const;
    const pod = podVector();
    const after = patched(pod, await mutationOf({ view, lookUpVmi })(requestFor(pod)));
    const { limits } = after.spec.containers[0]!.resources;
    assert.equal(limits['physnet.plumbline.dev/physnet1'], '1');
    assert.equal(limits['plumbline.dev/tunnel'], undefined);
  });

  it('warns if a labelled namespace has no primary network', async () => {
    const view = viewOf(here, { findNad: () => overlay, primaryNetwork: () => ({ kind: 'missing' }) });
    const { warnings } = await mutationOf({ view })(requestFor(podVector()));
    assert.ok(warnings?.some((text) => /telco-east is labelled for a primary user-defined network/.test(text)));
  });

  it('records for the extender the preferred networks, not the required ones, and whether the guest spans NUMA nodes', async () => {
    const findNad = ({ name }: NetworkRef) => localnet(name === 'west' ? 'physnet1' : 'elsewhere');
    const view = viewOf([kindOf(2, { physnets: { physnet1: '0' } })], { findNad });
    const placed = async (wishes: Record<string, string>, spans: boolean) => {
      const pod = podVector();
      pod.metadata.annotations[NETWORKS] = 'east,west';
      pod.metadata.annotations[PLACEMENT_ANNOTATION] = '{"preferred":["plumbline.dev/tunnel"]}';
      const vmi = vmiVector((one) => {
        one.metadata.annotations = { 'plumbline.dev/numa-affinity': JSON.stringify(wishes) };
        if (!spans) Object.assign(one.spec.domain.cpu ?? {}, { numa: undefined });
      });
      const lookUpVmi = async () => ({ kind: 'found', vmi }) as const;
      return patched(pod, await mutationOf({ view, lookUpVmi })(requestFor(pod))).metadata.annotations[
        PLACEMENT_ANNOTATION
      ];
    };
    const preferred = ['physnet.plumbline.dev/elsewhere'];
    const east = { 'physnet.plumbline.dev/elsewhere': 'net1' };
    const west = { 'physnet.plumbline.dev/physnet1': 'net2' };
    for (const spansCells of [true, false]) {
      const interfaces = { ...west, ...east };
      const text = await placed({ east: 'preferred' }, spansCells);
      assert.deepEqual(parsePreferences(text), { preferred, spansCells, interfaces, guestThreads: 1 });
      const required = await placed({ east: 'none' }, spansCells);
      assert.deepEqual(parsePreferences(required), { preferred: [], spansCells, interfaces: west, guestThreads: 1 });
    }
    assert.equal(await placed({ east: 'none', west: 'none' }, true), undefined);
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

  it('refuses an unreadable annotation with the reason', async () => {
    const pod = podVector();
    pod.metadata.annotations[NETWORKS] = '[{"name":';
    const answer = await mutationOf()(requestFor(pod));
    assert.ok(!answer.allowed);
    assert.equal(answer.code, 400);
  });
});
