import assert from 'node:assert/strict';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { createMaskedVms } from '../../../scheduler-plugin/cluster/masked-vms.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { eventually } from '../../support/eventually.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { recordingLogger } from '../../support/logger.ts';
import { podOf } from '../extender-fixture.ts';
import { createApi } from './watch-fixture.ts';

const PODS = '/api/v1/pods';
const LONG = 1_200_000;
const MEMORY_BYTES = 16 * 1024 * 1024;

const owned = (name: string, owner: string) => ({
  name,
  namespace: 'hostile',
  uid: `uid-${name}`,
  resourceVersion: '2',
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: owner, uid: 'o', controller: true }],
});
const pod = (name: string, owner: string) => ({ ...podOf('2'), metadata: owned(name, owner) });

describe('objects with texts of 1.2 MB', () => {
  const setUp = () => {
    const api = createApi();
    const logged = recordingLogger();
    const state = new ClusterState(logged.log);
    const instances = new Map<string, unknown>();
    const common = { client: api.client, log: logged.log, now: () => performance.now() / 1000 };
    const cluster = new Cluster({
      ...common,
      state,
      reader: new NeedsReader('all'),
      dpuLeaseNamespace: 'ovn',
    });
    const vms = createMaskedVms({
      ...common,
      onInstance: (key, instance) => (instance ? instances.set(key, instance) : instances.delete(key)),
    });
    const ending = new AbortController();
    const running = Promise.all([cluster.run(ending.signal), vms.run(ending.signal)]);
    const end = async () => {
      ending.abort();
      await running;
    };
    return { api, cluster, instances, logged, end };
  };

  it('forty waiting pods leave nothing but one line each, and other pods are read', async () => {
    const { api, cluster, logged, end } = setUp();
    await eventually(() => api.watched(PODS), 'the watch');
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 40; i++) {
      api.push(PODS, 'ADDED', pod(`p${i}`, `${i}${'x'.repeat(LONG)}`));
      if (i % 10 === 0) await eventually(() => api.unread(PODS) === 0, 'the watch');
    }
    api.push(PODS, 'ADDED', pod('innocent', 'vm'));
    await eventually(() => cluster.pods.has('hostile/innocent'), 'the innocent pod');
    collectGarbage();
    const bytes = process.memoryUsage().heapUsed - before;
    assert.deepEqual([...cluster.pods.keys()], ['hostile/innocent']);
    assert.ok(bytes < MEMORY_BYTES, `${bytes} bytes`);
    const lines = logged.lines.filter(({ msg }) => String(msg).startsWith('object ignored'));
    assert.equal(lines.length, 40);
    assert.ok(lines.every((line) => JSON.stringify(line).length < 600));
    await end();
  }).timeout(120_000);
});
