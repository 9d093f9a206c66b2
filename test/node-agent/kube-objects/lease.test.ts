import assert from 'node:assert/strict';
import { Renewals, readNode } from '../../../node-agent/kube-objects/lease.ts';
import { createFakeApi } from '../api-stand-in.ts';

const NODE = 'worker-1';

describe('the Node of the agent', () => {
  const read = (status?: object, labels?: object) => {
    const { client, objects } = createFakeApi(NODE);
    objects.set(`/api/v1/nodes/${NODE}`, { metadata: { name: NODE, uid: 'u', labels }, status });
    return readNode(client, NODE, new AbortController().signal);
  };

  it('has what the kubelet has written', async () => {
    const status = {
      nodeInfo: { kubeletVersion: 'v1.36.0' },
      conditions: [{ type: 'DiskPressure' }, { type: 'Ready', lastHeartbeatTime: '2026-01-01T00:00:00Z' }],
      capacity: { pods: '250', 'a/vf': '6' },
      allocatable: { 'a/vf': '4' },
      declaredFeatures: ['X'],
    };
    assert.deepEqual(await read(status, { zone: 'a' }), {
      name: NODE,
      uid: 'u',
      kubeletVersion: 'v1.36.0',
      heartbeat: '2026-01-01T00:00:00Z',
      maxPods: 250,
      capacity: status.capacity,
      allocatable: status.allocatable,
      declaredFeatures: ['X'],
      labels: { zone: 'a' },
    });
  });

  it('may lack all of it', async () => {
    const { kubeletVersion, heartbeat, maxPods, ...rest } = await read();
    assert.deepEqual([kubeletVersion, heartbeat, maxPods], [undefined, undefined, undefined]);
    assert.deepEqual(rest, { name: NODE, uid: 'u', capacity: {}, allocatable: {}, declaredFeatures: [], labels: {} });
  });
});

describe('the times of renewals', () => {
  const at = (second: number, microseconds = 0) =>
    `2026-01-01T00:00:0${second}.${String(microseconds).padStart(6, '0')}Z`;

  it('always increase, also if the clock is set back, and after those of an earlier process', () => {
    let second = 5;
    const renewals = new Renewals(() => Date.parse(at(second)));
    assert.equal(renewals.next(), at(5));
    second = 1;
    assert.equal(renewals.next(), at(5, 1));
    renewals.continueAfter(at(3));
    assert.equal(renewals.next(), at(5, 2), 'an earlier time does not count');
    for (const unreadable of [null, 'never']) renewals.continueAfter(unreadable);
    renewals.continueAfter(at(7));
    assert.equal(renewals.next(), at(7, 1));
    second = 9;
    assert.equal(renewals.next(), at(9));
  });
});
