import assert from 'node:assert/strict';
import { secondsUntil, until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { inParallel, type Replica, type Stage, startStage, topologyOf } from './stage.ts';

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const NODES = ['n1', 'n2', 'n3', 'n4', 'n5'];
/** Room for one pod with four CPUs. */
const almostFull = topologyOf({ assignments: [{ podUID: 'other', container: 'compute', cpus: '3-7,11-15' }] });

for (const nominates of [false, true]) {
  const title = nominates ? 'a kube-scheduler that nominates its choice' : 'a kube-scheduler as before 1.35';
  describe(`a pod whose volume never comes, with ${title}`, function () {
    onControlPlane(this);
    let stage: Stage;
    let replica: Replica;

    before(async () => {
      stage = await startStage();
      await stage.addNodes(NODES.map((name) => ({ name, topology: almostFull })));
      replica = await stage.startReplica();
      await stage.startScheduler({ flags: [`--feature-gates=NominatedNodeNameForExpectation=${nominates}`] });
      await stage.plane.create({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'never' },
        provisioner: 'example.com/absent',
        volumeBindingMode: 'WaitForFirstConsumer',
      });
    });
    after(() => stage?.stop());

    it('takes one node; the pods of others get all the remaining ones at once', async () => {
      const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
      await stage.client.create(CLAIMS, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'disk' },
        spec: { ...claim, storageClassName: 'never' },
      });
      const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }];
      await stage.addPod({ name: 'slow', cpu: '4', more: { volumes } });
      await until('kube-scheduler to choose its node', async () => {
        const { metadata } = (await stage.client.get(`${CLAIMS}/disk`)) as {
          metadata: { annotations?: Record<string, string> };
        };
        return metadata.annotations?.['volume.kubernetes.io/selected-node'] !== undefined;
      });
      await until('the nomination, if any', async () => {
        const { status } = await stage.podOf('slow');
        return (status.nominatedNodeName !== undefined) === nominates;
      });
      const victims = NODES.slice(1).map((name) => `of-${name}`);
      await inParallel(victims, (name) => stage.addPod({ name, cpu: '4' }));
      const nodesOf = async () => {
        const pods = (await stage.pods()).filter(({ metadata }) => victims.includes(metadata.name));
        return new Set(pods.flatMap(({ spec }) => spec.nodeName ?? []));
      };
      const took = await secondsUntil('all victims to be bound', async () => (await nodesOf()).size === 4);
      console.log(`      4 of 4 were bound after ${took.toFixed(1)} s`);
      assert.equal((await stage.podOf('slow')).spec.nodeName, undefined, 'it still waits');
      const unbound = () => replica.metric('plumbline_extender_reservations', { kind: 'unbound' });
      await until('its reservation in the metrics', async () => (await unbound()) === (nominates ? 0 : 1));
    });
  });
}
