import assert from 'node:assert/strict';
import { createHistories } from '../../../console/server/history.ts';
import { KubeError } from '../../../kube/client.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';

const event = (kind: string, name: string, reason: string, time: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: `${name}.${reason}`.toLowerCase(), namespace: kind === 'Node' ? 'default' : 'vms' },
  involvedObject: { kind, name, ...(kind === 'Node' ? {} : { namespace: 'vms' }) },
  type: 'Normal',
  reason,
  message: `${reason} of ${name}`,
  firstTimestamp: time,
  lastTimestamp: time,
  ...more,
});

describe('the history of a node and of a VM', () => {
  let api: ApiFixture;
  before(async () => {
    api = await startApi();
    const { client } = api;
    await client.create('/api/v1/namespaces', { metadata: { name: 'vms' } });
    const conditions = [
      { type: 'Ready', status: 'True', lastTransitionTime: '2026-05-04T09:00:00Z', message: 'kubelet is ready' },
      { type: 'plumbline.dev/DPUReady', status: 'False', lastTransitionTime: '2026-05-04T12:00:00Z', message: 'dead' },
      { type: 'DiskPressure', status: 'False', lastTransitionTime: '2026-05-04T08:00:00Z' },
    ];
    await client.create('/api/v1/nodes', { metadata: { name: 'n1' }, status: { conditions } });
    await client.create('/api/v1/nodes', { metadata: { name: 'n2' }, status: { conditions } });
    const phases = [
      { phase: 'Pending', phaseTransitionTimestamp: '2026-05-04T10:00:00Z' },
      { phase: 'Running', phaseTransitionTimestamp: '2026-05-04T10:00:09Z' },
    ];
    const moved = { sourceNode: 'n1', targetNode: 'n2', startTimestamp: '2026-05-04T11:00:00Z', failed: true };
    await client.create('/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances', {
      metadata: { name: 'router' },
      spec: {},
      status: { phaseTransitionTimestamps: phases, migrationState: moved },
    });
    const repeated = { count: 4, firstTimestamp: '2026-05-04T07:00:00Z', type: 'Warning' };
    const events = [
      event('Node', 'n1', 'OVSThreadsMoved', '2026-05-04T11:30:00Z', repeated),
      event('Node', 'n2', 'Other', '2026-05-04T11:30:00Z'),
      event('VirtualMachineInstance', 'router', 'PaddedToWholeCores', '2026-05-04T10:00:01Z'),
      event('Pod', 'virt-launcher-router-x2x4z', 'Scheduled', '2026-05-04T10:00:02Z'),
      event('Pod', 'virt-launcher-router-two-x2x4z', 'Scheduled', '2026-05-04T10:00:02Z'),
      event('Pod', 'router', 'Pulled', '2026-05-04T10:00:02Z'),
    ];
    for (const event of events) await client.create(`/api/v1/namespaces/${event.metadata.namespace}/events`, event);
  });
  after(() => api.stop());

  it('of a node has its Events and changes of conditions, newest first, with bad ones marked', async () => {
    const { entries, notes } = await createHistories(api.client).ofNode('n1');
    assert.deepEqual(
      entries.map(({ reason, isWarning, from }) => [reason, isWarning, from]),
      [
        ['plumbline.dev/DPUReady is False', true, 'condition'],
        ['OVSThreadsMoved', true, 'event'],
        ['Ready is True', false, 'condition'],
        ['DiskPressure is False', false, 'condition'],
      ],
    );
    assert.deepEqual([entries[1]?.count, entries[1]?.since], [4, '2026-05-04T07:00:00Z']);
    assert.deepEqual(notes, []);
  });

  it('of a VM has its own Events, those of its launchers, its phases and its migration, and no others', async () => {
    const { entries } = await createHistories(api.client).ofVm('vms/router');
    assert.deepEqual(
      entries.map(({ reason, about }) => [reason, about]),
      [
        ['MigrationStarted', undefined],
        ['Running', undefined],
        ['Scheduled', 'Pod virt-launcher-router-x2x4z'],
        ['PaddedToWholeCores', undefined],
        ['Pending', undefined],
      ],
    );
  });

  it('has a note for unreadable kinds, and an error for a failed request', async () => {
    const refusing = (status: number) => ({
      get: async () => {
        throw new KubeError(status, 'Refused', 'GET: refused');
      },
    });
    const { entries, notes } = await createHistories(refusing(403)).ofNode('n1');
    assert.deepEqual(entries, []);
    assert.equal(notes[0], 'Events are missing: this console may not read them');
    await assert.rejects(createHistories(refusing(500)).ofNode('n1'), KubeError);
  });
});
