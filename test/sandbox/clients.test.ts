import assert from 'node:assert/strict';
import { EVENTS, LEASES, NODES, PODS } from '../../sandbox/api-server/built-in-types.ts';
import { RenewedLease } from '../../sandbox/clients/local-client.ts';
import type { KubeNode, KubePod } from '../../sandbox/objects.ts';
import { until } from '../support/until.ts';
import { podOf, useApiServer } from './support.ts';

describe('a client in the process of the API server', () => {
  const suite = useApiServer();

  it('changes, binds and deletes objects, and follows them from the ones that exist', async () => {
    const { client } = suite;
    await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } } as KubeNode);
    const pod = await client.create(PODS, podOf('a') as KubePod);
    const changes: string[] = [];
    const end = client.follow(PODS, ({ type, object, previous }) => {
      changes.push([type, object.metadata.labels?.['x'], object.spec.nodeName, previous?.spec.nodeName].join(' '));
    });
    await client.edit(PODS, pod, (draft) => {
      draft.metadata.labels = { x: '1' };
    });
    await client.bind(pod, 'n1');
    assert.equal(client.get(PODS, 'default', 'a')?.spec.nodeName, 'n1');
    assert.equal(pod.spec.nodeName, undefined, 'an object that was read does not change');
    await client.delete(PODS, pod, { gracePeriodSeconds: 0 });
    end();
    await client.create(PODS, podOf('b') as KubePod);
    await client.delete(PODS, pod, { gracePeriodSeconds: 0 });
    assert.deepEqual(changes, ['ADDED   ', 'MODIFIED 1  ', 'MODIFIED 1 n1 ', 'DELETED 1 n1 n1']);
    const names = client.list(PODS).map(({ metadata }) => metadata.name);
    assert.deepEqual(names, ['b']);
  });

  it('counts an Event that is repeated', async () => {
    const { client } = suite;
    const pod = client.get(PODS, 'default', 'b')!;
    const event = { type: 'Warning', reason: 'Failed', message: 'no' } as const;
    for (const message of ['no', 'no', 'other']) await client.record('kubelet', pod, { ...event, message });
    const events = client.list(EVENTS).map(({ message, count, involvedObject }) => [message, count, involvedObject]);
    const about = { apiVersion: 'v1', kind: 'Pod', name: 'b', namespace: 'default', uid: pod.metadata.uid };
    assert.deepEqual(events.sort(), [
      ['no', 2, about],
      ['other', 1, about],
    ]);
  });

  it('has a Lease renewed until it is released', async () => {
    const { client } = suite;
    const faults: unknown[] = [];
    const metadata = { name: 'n1', namespace: 'kube-node-lease' };
    const times = { durationSeconds: 40, intervalSeconds: 0.01 };
    const lease = new RenewedLease({
      client,
      metadata,
      holder: 'n1',
      ...times,
      onFault: (error) => faults.push(error),
    });
    const spec = () => client.get(LEASES, 'kube-node-lease', 'n1')?.['spec'] as Record<string, unknown> | undefined;
    await lease.start();
    const { renewTime, ...rest } = spec() ?? {};
    assert.deepEqual(rest, { holderIdentity: 'n1', leaseDurationSeconds: 40 });
    await until('another renewal', () => spec()?.['renewTime'] !== renewTime);
    await lease.release();
    assert.deepEqual([spec()?.['holderIdentity'], faults], ['', []]);
  });
});
