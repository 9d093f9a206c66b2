import assert from 'node:assert/strict';
import {
  type DpuRun,
  isNetworkLost,
  type NetworkedPod,
  networkMadeAt,
  nextRecord,
  parseDpuRun,
  restartOf,
} from '../../../model/lease/dpu-run.ts';

const AT = '2026-11-29T10:00:00Z';
const RUN: DpuRun = { bootId: 'a', pid: 812, start: 4000, pidfile: 1_000 };

describe('the record of a DPU’s runs', () => {
  it('has no restart at first', () => {
    assert.deepEqual(nextRecord(undefined, RUN, AT), RUN);
    assert.equal(restartOf(RUN), undefined);
  });

  const same: [string, Partial<DpuRun>][] = [
    ['nothing has changed', {}],
    ['the pidfile was only touched', { pidfile: 2_000 }],
    ['the process is hidden from this agent', { start: undefined }],
  ];
  for (const [label, change] of same)
    it(`stays when ${label}`, () => assert.equal(nextRecord(RUN, { ...RUN, ...change }, AT), undefined));

  const restarts: [string, Partial<DpuRun>, string][] = [
    ['the machine booted', { bootId: 'b' }, 'reboot'],
    ['ovs-vswitchd has another process id', { pid: 813, start: 5000 }, 'open-vswitch'],
    ['the same process id belongs to a later process', { start: 5000 }, 'open-vswitch'],
    ['a hidden daemon wrote its pidfile again', { start: undefined, pidfile: 2_000 }, 'open-vswitch'],
  ];
  for (const [label, change, kind] of restarts) {
    it(`has a restart when ${label}`, () => {
      // A hidden daemon is hidden before, too.
      const before = 'start' in change && change.start === undefined ? { ...RUN, start: undefined } : RUN;
      const record = nextRecord(before, { ...RUN, ...change }, AT);
      assert.deepEqual(restartOf(record), { kind, at: AT });
      assert.deepEqual(parseDpuRun(JSON.stringify(record)), JSON.parse(JSON.stringify(record)), 'as in the Lease');
    });
  }

  it('has only the last restart, with the run before it', () => {
    const first = nextRecord(RUN, { ...RUN, bootId: 'b' }, AT);
    const second = nextRecord(first, { ...RUN, bootId: 'c' }, '2026-11-29T11:00:00Z');
    assert.deepEqual(second?.restart, { previous: { ...RUN, bootId: 'b' }, at: '2026-11-29T11:00:00Z' });
  });

  for (const text of [undefined, '', '[]', '{}', '{"bootId":"a","pid":"1"}', `"${'x'.repeat(3000)}"`])
    it(`is none if it reads ${String(text).slice(0, 30)}`, () => assert.equal(parseDpuRun(text), undefined));
});

describe('the network of a pod after a restart of its DPU', () => {
  const BEFORE = '2026-11-29T09:00:00Z';
  const AFTER = '2026-11-29T10:00:01Z';
  const sandbox = (status: string, lastTransitionTime = BEFORE) => [
    { type: 'PodReadyToStartContainers', status, lastTransitionTime },
  ];
  const details = { 'k8s.ovn.org/dpu.connection-details': '{"default":{"pfId":"0","vfId":"3","sandboxId":"s"}}' };
  const ready = { ...details, 'k8s.ovn.org/dpu.connection-status': '{"default":{"Status":"Ready"}}' };
  const writtenAt = (time: string, name: string) => [
    { manager: 'ovnkube', time, fieldsV1: { 'f:metadata': { 'f:annotations': { [`f:${name}`]: {} } } } },
  ];
  const STATUS = 'k8s.ovn.org/dpu.connection-status';
  const running = (more: object = {}, metadata: object = {}): NetworkedPod => ({
    metadata: { creationTimestamp: BEFORE, ...metadata },
    spec: {},
    status: { phase: 'Running', conditions: sandbox('True'), ...more },
  });
  const connected = (annotations: object, time: string, name = STATUS) =>
    running({}, { annotations, managedFields: writtenAt(time, name) });
  const cases: [string, NetworkedPod, boolean][] = [
    ['a pod that ran before', running(), true],
    ['one of a kubelet without the condition', running({ conditions: [] }), true],
    ['a pod that was created afterwards', running({ conditions: [] }, { creationTimestamp: AFTER }), false],
    ['a pod that waited for the DPU and then started', running({ conditions: sandbox('True', AFTER) }), false],
    ['a pod without a sandbox', running({ conditions: sandbox('False') }), false],
    ['a pod that waits', running({ phase: 'Pending', conditions: [] }), false],
    ['a pod that has its sandbox and pulls images', running({ phase: 'Pending' }), true],
    ['a pod that has ended', running({ phase: 'Succeeded' }), false],
    ['a pod in deletion', running({}, { deletionTimestamp: AFTER }), false],
    ['a pod on the host’s network', { ...running(), spec: { hostNetwork: true } }, false],
    ['a pod that OVN-Kubernetes has connected again', connected(ready, AFTER), false],
    ['a pod that it connected before only', connected(ready, BEFORE), true],
    ['a pod that its DPU was asked to connect again and has not connected', connected(details, AFTER), true],
    ['a pod of which something else was written', connected(ready, AFTER, 'k8s.ovn.org/pod-networks'), true],
  ];
  for (const [label, pod, isLost] of cases)
    it(`${isLost ? 'is lost' : 'is not lost'}: ${label}`, () =>
      assert.equal(isNetworkLost(networkMadeAt(pod), { at: AT }), isLost));
});
