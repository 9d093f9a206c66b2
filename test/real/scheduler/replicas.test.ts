import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { needs } from '../../support/parts.ts';
import { secondsUntil, until } from '../../support/until.ts';
import { clientOf, launcher } from './extender-call.ts';
import { inParallel, type Replica, type Stage, startStage, topologyOf } from './stage.ts';

/** Of 14 free CPUs on a node. */
const PODS_PER_NODE = 3;

describe('replicas of the extender', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(240_000);
  let stage: Stage;
  let replicas: Replica[];

  beforeEach(async function () {
    this.timeout(300_000);
    stage = await startStage();
    replicas = [await stage.startReplica(), await stage.startReplica()];
  });
  afterEach(() => stage?.stop());

  const active = async (): Promise<Replica> => {
    let found: Replica | undefined;
    await until('one replica to be active', async () => {
      for (const one of replicas) if (await one.isActive().catch(() => false)) found = one;
      const endpoint = await stage.service.endpoint();
      return found !== undefined && endpoint?.address === found.podIp && endpoint.port === found.port;
    });
    return found!;
  };
  const other = (one: Replica) => replicas.find(({ pid }) => pid !== one.pid)!;
  const addNodes = (count: number) =>
    stage.addNodes(Array.from({ length: count }, (_, i) => ({ name: `n${i}`, topology: topologyOf() })));
  const allBound = async (count: number) => {
    await until(
      `${count} pods to be bound`,
      async () => (await stage.pods()).filter(({ spec }) => spec.nodeName !== undefined).length === count,
    );
    const perNode = new Map<string, number>();
    for (const { spec } of await stage.pods()) perNode.set(spec.nodeName!, (perNode.get(spec.nodeName!) ?? 0) + 1);
    for (const [node, pods] of perNode) assert.ok(pods <= PODS_PER_NODE, `${node} was promised to ${pods} pods`);
  };

  it('are all ready, one of them decides, and it gives no verdict when it resumes after its Lease has expired', async () => {
    await addNodes(1);
    for (const replica of replicas) assert.ok(await replica.isReady());
    const first = await active();
    const second = other(first);
    const client = clientOf(stage, first);
    await until('it to know the node', async () => {
      const { NodeNames } = await client.filter(launcher('a', '4'), ['n0']);
      return NodeNames?.length === 1;
    });
    assert.match((await clientOf(stage, second).filter(launcher('a', '4'), ['n0'])).Error, /another replica/);

    first.signal('SIGSTOP');
    // This call waits in the socket of a suspended process.
    const waiting = client.filter(launcher('b', '4'), ['n0']).catch((error: Error) => error);
    const took = await secondsUntil('the other to take over', () => second.isActive());
    await until('the Service to lead there', async () => (await stage.service.endpoint())?.port === second.port);
    console.log(`      taken over after ${took.toFixed(1)} s`);
    first.signal('SIGCONT');
    const answer = await waiting;
    assert.ok(answer instanceof Error || /another replica/.test(answer.Error), JSON.stringify(answer));
    await assert.doesNotReject(async () => {
      const next = await clientOf(stage, first).filter(launcher('c', '4'), ['n0']);
      assert.match(next.Error, /another replica/);
      assert.equal(next.NodeNames, null);
    });
    assert.ok(await second.isActive());
    client.close();
  });

  it('lose nothing and promise nothing twice when the active one is killed during 500 pods', async () => {
    const pods = 500;
    await addNodes(Math.ceil(pods / PODS_PER_NODE) + 3);
    const first = await active();
    await stage.startScheduler({ percentageOfNodesToScore: 100 });
    const creating = inParallel(
      Array.from({ length: pods }, (_, i) => `p${i}`),
      (name) => stage.addPod({ name, cpu: '4' }),
      8,
    );
    const isUnderWay = async () => (await stage.pods()).filter(({ spec }) => spec.nodeName !== undefined).length > 150;
    await until('the first pods to be bound', isUnderWay);
    await first.stop('SIGKILL');
    const took = await secondsUntil('the other to take over', () => other(first).isActive());
    console.log(`      taken over after ${took.toFixed(1)} s`);
    await creating;
    await allBound(pods);
  });

  it('are replaced one by one while pods arrive', async () => {
    const pods = 60;
    await addNodes(Math.ceil(pods / PODS_PER_NODE) + 3);
    await active();
    await stage.startScheduler({ percentageOfNodesToScore: 100 });
    const creating = (async () => {
      for (let i = 0; i < pods; i++) {
        await stage.addPod({ name: `p${i}`, cpu: '4' });
        await delay(200);
      }
    })();
    for (const old of [...replicas]) {
      replicas.push(await stage.startReplica());
      assert.equal(await old.stop('SIGTERM'), 0);
      replicas.splice(replicas.indexOf(old), 1);
    }
    await creating;
    await allBound(pods);
    assert.ok(replicas.includes(await active()));
  });

  const SLICE = '/apis/discovery.k8s.io/v1/namespaces/plumbline-system/endpointslices/plumbline-scheduler-plugin';
  const ENDPOINTS = '/api/v1/namespaces/plumbline-system/endpoints/plumbline-scheduler-plugin';
  const published = async () => {
    const { endpoints } = (await stage.client.get(SLICE)) as { endpoints?: readonly object[] | null };
    const { subsets } = (await stage.client.get(ENDPOINTS)) as { subsets?: readonly object[] };
    return [endpoints?.length ?? 0, subsets?.length ?? 0];
  };

  it('leave the Service before they stop answering; the last one leaves it without an endpoint', async () => {
    const first = await active();
    const second = other(first);
    let withdrawn: string[] = [];
    const watching = until('the Service to leave the first', async () => {
      const endpoint = await stage.service.endpoint();
      if (endpoint?.port === first.port) return false;
      // A client that still has a connection to it gets an answer.
      const { Error: refusal } = await clientOf(stage, first).filter(launcher('a', '4'), ['n0']);
      withdrawn = [refusal];
      return true;
    });
    assert.equal(await first.stop('SIGTERM'), 0);
    await watching;
    assert.match(withdrawn[0] ?? '', /replica|stopping|hand/);
    await until(
      'the Service to lead to the second',
      async () => (await stage.service.endpoint())?.port === second.port,
    );
    assert.deepEqual(await published(), [1, 1]);
    assert.equal(await second.stop('SIGTERM'), 0);
    assert.deepEqual(await published(), [0, 0]);
  });

  it('repair foreign changes of the EndpointSlice within 12 seconds', async () => {
    await active();
    const merge = 'application/merge-patch+json';
    const labels = { 'kubernetes.io/service-name': 'another-service' };
    const before = (await stage.client.get(SLICE)) as { endpoints: readonly object[]; metadata: { labels: object } };
    const endpoints = before.endpoints.map((one) => ({ ...one, conditions: { ready: false } }));
    await stage.client.patch(SLICE, merge, { metadata: { labels }, endpoints });
    const took = await secondsUntil(
      'the slice to be as before',
      async () => {
        const now = (await stage.client.get(SLICE)) as typeof before;
        assert.deepEqual([now.endpoints, now.metadata.labels], [before.endpoints, before.metadata.labels]);
        return true;
      },
      12,
    );
    console.log(`      repaired after ${took.toFixed(1)} s`);
  });
});
