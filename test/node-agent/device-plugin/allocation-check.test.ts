import assert from 'node:assert/strict';
import type { EventTarget, EventText } from '../../../kube/events.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { checkAllocation } from '../../../node-agent/device-plugin/allocation-check.ts';
import {
  type AllocationCheckPolicy,
  createAllocationChecker,
  createRefusedStarts,
  type RefusedStarts,
} from '../../../node-agent/device-plugin/allocation-checker.ts';
import { silent } from '../../support/logger.ts';
import { createFakeApi, type FakeApi } from '../api-stand-in.ts';
import { twoCells as host, testMetrics } from '../support.ts';

const set = (text: string) => CpuSet.parse(text);
const PHYSNET = 'physnet.plumbline.dev/physnet1';

describe('an allocation', () => {
  const SPANS = { spansCells: true };
  const WHOLE = { wholeCores: true };
  const cases: [label: string, cpus: string, cells: string, needs: object, refused?: string][] = [
    ['all CPUs are on the network’s NUMA node', '4-5', '1', {}],
    ['no CPU is on the network’s NUMA node', '2-3', '1', {}, 'NetworkElsewhere'],
    ['some CPUs are there, the guest has one NUMA node', '2-5', '1', {}, 'NetworkElsewhere'],
    ['some CPUs are there, the guest spans NUMA nodes', '2-5', '1', SPANS],
    ['no CPU is there, the guest spans NUMA nodes', '0-3', '1', SPANS, 'NetworkElsewhere'],
    ['the network is on both NUMA nodes', '2-5', '0-1', {}],
    ['the NUMA node of the network is unknown', '2-3', '', {}],
    ['a container in the shared pool', '', '1', WHOLE],
    ['a split core', '4,6', '1', WHOLE, 'SplitCores'],
    ['a split core, but whole cores are not required', '4,6', '1', {}],
    ['whole cores', '4-7', '1', WHOLE],
  ];
  for (const [label, cpus, cells, needs, refused] of cases) {
    it(`${label}: ${refused ?? 'granted'}`, () => {
      const claim = {
        host,
        resource: PHYSNET,
        cells: set(cells),
        cpus: set(cpus),
        wholeCores: false,
        spansCells: false,
      };
      assert.equal(checkAllocation({ ...claim, ...needs })?.reason, refused);
    });
  }

  it('names the network, the NUMA nodes wanted and the CPUs given', () => {
    const claim = { host, cells: set('1'), cpus: set('2-3'), wholeCores: true, spansCells: false };
    assert.equal(
      checkAllocation({ ...claim, resource: PHYSNET })?.message,
      'physnet physnet1 is on NUMA node 1, the kubelet gave CPUs 2-3 on NUMA node 0',
    );
    assert.match(
      checkAllocation({ ...claim, resource: 'plumbline.dev/tunnel' })?.message ?? '',
      /^the tunnel is on NUMA/,
    );
    const split = { ...claim, resource: PHYSNET, cpus: set('4,6') };
    assert.match(checkAllocation(split)?.message ?? '', /CPUs 4,6, which split core 4-5 and 6-7/);
  });
});

describe('allocation checks against pods of the API server', () => {
  let api: FakeApi;
  let notified: { target: EventTarget; event: EventText }[];
  let reads: string[];
  let refusals: RefusedStarts;
  const holder = { namespace: 'ns', podName: 'vm', container: 'compute', cpus: set('2-5') };
  const request = { holder, resource: PHYSNET, cells: set('1'), host, wholeCoresOnly: false };

  beforeEach(() => {
    api = createFakeApi('worker-1');
    notified = [];
    reads = [];
    refusals = createRefusedStarts(() => 0);
  });
  const claims = (policy: AllocationCheckPolicy = 'enforce') =>
    createAllocationChecker({
      client: {
        ...api.client,
        get: (path) => {
          reads.push(path);
          return api.client.get(path);
        },
      },
      events: { record: (target, event) => void notified.push({ target, event }), flush: async () => {} },
      policy,
      refusals,
      log: silent,
      metrics: testMetrics(),
    });
  const pod = (annotations: Record<string, string> = {}) =>
    api.objects.set('/api/v1/namespaces/ns/pods/vm', {
      metadata: { name: 'vm', namespace: 'ns', uid: 'u1', annotations },
      spec: { containers: [{ name: 'compute' }] },
    });
  const check = (change: Partial<typeof request> = {}, policy?: AllocationCheckPolicy) =>
    claims(policy).check({ ...request, ...change }, new AbortController().signal);

  it('grants a good allocation without a request to the API server', async () => {
    assert.equal(await check({ holder: { ...holder, cpus: set('4-5') } }), undefined);
    assert.deepEqual([reads, notified], [[], []]);
  });

  it('refuses a wrong allocation, with an Event on the pod', async () => {
    pod();
    assert.match((await check()) ?? '', /physnet physnet1 is on NUMA node 1, the kubelet gave CPUs 2-5/);
    assert.deepEqual(notified[0]?.target, { apiVersion: 'v1', kind: 'Pod', name: 'vm', namespace: 'ns', uid: 'u1' });
    const { type, reason, message } = notified[0]!.event;
    assert.deepEqual([type, reason], ['Warning', 'NetworkElsewhere']);
    assert.match(message, /container compute: .*; it does not start/);
    const [refusal] = refusals.current();
    assert.deepEqual([refusal?.podUID, refusal?.namespace, refusal?.podName], ['u1', 'ns', 'vm']);
  });

  it('only records an Event with policy warn', async () => {
    pod();
    assert.equal(await check({}, 'warn'), undefined);
    assert.match(notified[0]?.event.message ?? '', /it starts anyway/);
    assert.deepEqual(refusals.current(), []);
  });

  it('grants a guest that spans NUMA nodes according to the webhook’s annotation', async () => {
    pod({ [PLACEMENT_ANNOTATION]: '{"spansCells":true}' });
    assert.equal(await check(), undefined);
  });

  it('requires whole cores if the annotation or the kubelet promises them', async () => {
    const split = { holder: { ...holder, cpus: set('4,6') } };
    pod();
    assert.equal(await check(split), undefined);
    assert.match((await check({ ...split, wholeCoresOnly: true })) ?? '', /split core/);
    pod({ [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY });
    assert.match((await check(split)) ?? '', /split core/);
    assert.match((await check({ holder: { ...holder, cpus: set('4-6') } })) ?? '', /split core/, 'an odd number');
  });

  it('assumes that an unreadable pod may span NUMA nodes, and still requires one CPU on the network’s NUMA node', async () => {
    api.failing = true;
    assert.equal(await check(), undefined, 'it may span');
    assert.match((await check({ holder: { ...holder, cpus: set('2-3') } })) ?? '', /NUMA node 1/);
  });
});

describe('refusals for the report', () => {
  const holder = (podName: string) => ({ namespace: 'ns', podName, container: 'compute', cpus: CpuSet.EMPTY });

  it('keeps the newest 64, shortened, and drops each after ten minutes without a repetition', () => {
    let now = 0;
    const refusals = createRefusedStarts(() => now);
    let changes = 0;
    const end = refusals.subscribe(() => changes++);
    for (let i = 0; i < 1000; i++) refusals.add(holder(`vm-${i}`), `u${i}`, 'x'.repeat(10_000));
    const refused = refusals.current();
    assert.deepEqual([refused.length, refused[0]?.podName, refused[0]?.message.length], [64, 'vm-936', 512]);
    now = 500;
    refusals.add(holder('vm-999'), 'u999', 'again');
    now = 600;
    assert.equal(refusals.current().length, 64);
    now = 600.001;
    assert.deepEqual(
      refusals.current().map(({ podName, message }) => [podName, message]),
      [['vm-999', 'again']],
    );
    end();
    refusals.add(holder('late'), undefined, '');
    assert.equal(changes, 1001);
  });
});
