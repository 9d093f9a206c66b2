import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { KubeClient } from '../../../kube/client.ts';
import { KubeError } from '../../../kube/errors.ts';
import { createElectedReplica } from '../../../scheduler-plugin/replica/elected.ts';
import { recordingLogger } from '../../support/logger.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/infra/leases/plumbline-scheduler-plugin';
const SLICE = '/apis/discovery.k8s.io/v1/namespaces/infra/endpointslices/plumbline-scheduler-plugin';

interface Stored {
  readonly metadata: { readonly resourceVersion: string };
  readonly [key: string]: unknown;
}

/** Objects in memory, with the conflicts of an API server; requests for a path can be held. */
function memoryApi() {
  const objects = new Map<string, Stored>();
  const gets: string[] = [];
  const held = new Map<string, { readonly ended: Promise<void>; readonly end: () => void }>();
  const failing = new Set<string>();
  let version = 0;
  const put = (path: string, body: object) => {
    const metadata = { ...(body as Stored).metadata, resourceVersion: `${++version}` };
    objects.set(path, { ...body, metadata });
    return objects.get(path);
  };
  const client = {
    async get(path: string) {
      gets.push(path);
      await held.get(path)?.ended;
      if (failing.has(path)) throw new KubeError(503, 'ServiceUnavailable', 'down');
      if (!objects.has(path)) throw new KubeError(404, 'NotFound', path);
      return objects.get(path);
    },
    async create(collection: string, body: { metadata: { name: string } }) {
      const path = `${collection}/${body.metadata.name}`;
      if (objects.has(path)) throw new KubeError(409, 'AlreadyExists', path);
      return put(path, body);
    },
    async replace(path: string, body: Stored) {
      if (objects.get(path)?.metadata.resourceVersion !== body.metadata.resourceVersion) {
        throw new KubeError(409, 'Conflict', path);
      }
      return put(path, body);
    },
  };
  const hold = (path: string) => {
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    held.set(path, { ended, end });
    return () => {
      held.delete(path);
      end();
    };
  };
  return { client: client as unknown as KubeClient, objects, gets, put, hold, failing };
}

const flush = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('a replica behind a Service', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  function scene({ podIp = '10.0.0.7' as string | undefined } = {}) {
    const api = memoryApi();
    const said: string[] = [];
    const clock = { now: 100 };
    const reads = { count: 0, failures: 0, wait: Promise.resolve() };
    const looks = { count: 0 };
    const logged = recordingLogger();
    const replica = createElectedReplica({
      config: { namespace: 'infra', podIp, podName: 'pod-1', nodeName: 'node-1' },
      client: api.client,
      identity: 'pod-1_a',
      port: () => {
        looks.count++;
        return 9443;
      },
      record: { annotation: 'plumbline.dev/record', write: () => undefined, read: () => void said.push('record') },
      catchUp: async () => {
        reads.count++;
        await reads.wait;
        if (reads.failures-- > 0) throw new Error('the API server is down');
      },
      onActive: () => void said.push('active'),
      onPassive: () => void said.push('passive'),
      log: logged.log,
      now: () => clock.now,
    });
    const ending = new AbortController();
    const run = () => replica.run(ending.signal);
    const pass = async (seconds: number) => {
      for (let steps = Math.round(seconds * 10); steps > 0; steps--) {
        clock.now += 0.1;
        mock.timers.tick(100);
        await flush();
      }
    };
    const holder = (holderIdentity: string) => {
      const { spec, ...lease } = api.objects.get(LEASE) as Stored & { spec: object };
      api.put(LEASE, { ...lease, spec: { ...spec, holderIdentity } });
    };
    const addresses = () =>
      (api.objects.get(SLICE)?.['endpoints'] as { addresses: string[] }[] | undefined)?.flatMap((one) => one.addresses);
    const warnings = () => logged.lines.filter(({ level }) => level === 40).map(({ msg }) => msg);
    return { ...api, replica, said, clock, reads, looks, run, pass, holder, addresses, warnings, ending };
  }

  /** Runs the scene's replica while the test looks at it. */
  async function running<T extends ReturnType<typeof scene>>(one: T, look: (one: T) => Promise<void>): Promise<void> {
    const ended = one.run();
    await flush();
    await look(one);
    one.ending.abort();
    await flush();
    await ended;
  }

  it('is active after it leads and has read the pods, and is then the only endpoint of the Service', async () => {
    const one = scene();
    assert.deepEqual([one.replica.isActive(), one.replica.mayAnswer(), one.replica.settled], [false, false, false]);
    await running(one, async ({ replica, said, reads, objects, addresses, warnings }) => {
      assert.deepEqual([replica.isActive(), replica.mayAnswer(), replica.settled], [true, true, true]);
      assert.deepEqual([said, reads.count, addresses(), warnings()], [['record', 'active'], 1, ['10.0.0.7'], []]);
      assert.deepEqual(objects.get(SLICE)?.['ports'], [{ name: 'https', port: 9443, protocol: 'TCP' }]);
      const [endpoint] = objects.get(SLICE)!['endpoints'] as { nodeName: string; targetRef: { name: string } }[];
      assert.deepEqual([endpoint?.nodeName, endpoint?.targetRef.name], ['node-1', 'pod-1']);
      await replica.called();
      assert.equal(reads.count, 1);
    });
  });

  it('is active without a pod address, but publishes no endpoint', async () => {
    const one = scene();
    const bare = createElectedReplica({
      config: { namespace: 'infra' },
      client: one.client,
      identity: 'bare',
      port: () => 9443,
      record: { annotation: 'plumbline.dev/record', write: () => undefined, read: () => undefined },
      catchUp: async () => undefined,
      onActive: () => void one.said.push('active'),
      onPassive: () => undefined,
      log: recordingLogger().log,
      now: () => one.clock.now,
    });
    const ended = bare.run(one.ending.signal);
    await flush();
    assert.deepEqual([bare.isActive(), one.said, one.objects.has(SLICE)], [true, ['active'], false]);
    await bare.release();
    assert.deepEqual([bare.isActive(), one.objects.has(SLICE), one.gets.includes(SLICE)], [false, false, false]);
    one.ending.abort();
    await ended;
  });

  it('retries a failed read of the pods after a second, and is not active before', async () => {
    const one = scene();
    one.reads.failures = 1;
    await running(one, async ({ replica, said, reads, pass, addresses, warnings }) => {
      assert.deepEqual(
        [replica.isActive(), replica.mayAnswer(), reads.count, addresses()],
        [false, false, 1, undefined],
      );
      assert.deepEqual(warnings(), ['reading recently bound pods failed; retrying']);
      await pass(0.9);
      assert.equal(reads.count, 1);
      await pass(0.2);
      assert.deepEqual([replica.isActive(), reads.count, said], [true, 2, ['record', 'active']]);
      await pass(15);
      assert.deepEqual([reads.count, said.length], [2, 2], 'once for each leadership');
    });
  });

  it('repairs its endpoint within ten seconds after someone else changes it', async () => {
    await running(scene(), async ({ pass, put, objects, addresses, gets }) => {
      const [slice] = [objects.get(SLICE)!];
      put(SLICE, { ...slice, endpoints: [{ addresses: ['10.9.9.9'], conditions: { ready: true } }] });
      const before = gets.filter((path) => path === SLICE).length;
      await pass(9.5);
      assert.deepEqual([addresses(), gets.filter((path) => path === SLICE).length], [['10.9.9.9'], before]);
      await pass(1);
      assert.deepEqual(addresses(), ['10.0.0.7']);
    });
  });

  it('retries a failed publication after a second', async () => {
    const one = scene();
    one.failing.add(SLICE);
    await running(one, async ({ replica, pass, addresses, failing }) => {
      assert.deepEqual([replica.isActive(), addresses()], [true, undefined]);
      failing.delete(SLICE);
      await pass(0.8);
      assert.equal(addresses(), undefined);
      await pass(0.4);
      assert.deepEqual(addresses(), ['10.0.0.7']);
    });
  });

  it('checks every ten seconds what it publishes while another replica leads', async () => {
    const one = scene();
    one.put(LEASE, { metadata: { name: 'lease' }, spec: { holderIdentity: 'pod-2_b', leaseDurationSeconds: 60 } });
    await running(one, async ({ replica, pass, looks }) => {
      await pass(9.5);
      assert.deepEqual([replica.isActive(), replica.settled, looks.count], [false, true, 1]);
      await pass(1);
      assert.equal(looks.count, 2);
    });
  });

  it('is not active while another replica holds the Lease, and reads the pods again when it regains the Lease', async () => {
    await running(scene(), async ({ replica, holder, pass, said, reads }) => {
      holder('pod-2_b');
      await pass(2.1);
      assert.deepEqual([replica.isActive(), said.slice(2)], [false, ['passive']]);
      await pass(5);
      assert.equal(reads.count, 1);
      holder('');
      await pass(2.1);
      assert.deepEqual([replica.isActive(), reads.count, said.slice(2)], [true, 2, ['passive', 'record', 'active']]);
    });
  });

  it('is not active if it lost the Lease while it read the pods', async () => {
    const one = scene();
    let end: () => void = () => undefined;
    one.reads.wait = new Promise((resolve) => {
      end = resolve;
    });
    await running(one, async ({ replica, holder, pass, said, addresses }) => {
      holder('pod-2_b');
      await pass(2.1);
      end();
      await flush();
      assert.deepEqual([replica.isActive(), replica.mayAnswer(), addresses()], [false, false, undefined]);
      assert.deepEqual(said, ['record', 'passive']);
    });
  });

  it('reads the pods at once if it lost and regained the Lease while it published', async () => {
    const one = scene();
    const proceed = one.hold(SLICE);
    await running(one, async ({ replica, holder, pass, reads }) => {
      assert.equal(replica.isActive(), true);
      holder('pod-2_b');
      await pass(2.1);
      holder('');
      await pass(2.1);
      assert.equal(reads.count, 1);
      proceed();
      await flush();
      assert.deepEqual([reads.count, replica.isActive()], [2, true]);
    });
  });

  it('logs no warning about a read that its stop interrupts', async () => {
    const one = scene();
    one.reads.failures = 1;
    let end: () => void = () => undefined;
    one.reads.wait = new Promise((resolve) => {
      end = resolve;
    });
    const ended = one.run();
    await flush();
    one.ending.abort();
    end();
    await ended;
    assert.deepEqual([one.reads.count, one.warnings()], [1, []]);
  });

  describe('while it stops', () => {
    it('removes its endpoint from the Service, then releases the Lease, and is not active', async () => {
      await running(scene(), async ({ replica, addresses, objects, said }) => {
        await replica.release();
        await flush();
        assert.deepEqual([replica.isActive(), replica.mayAnswer(), addresses()], [false, false, []]);
        assert.equal((objects.get(LEASE)!['spec'] as { holderIdentity: string }).holderIdentity, '');
        assert.deepEqual(said.slice(2), ['passive']);
      });
    });

    it('answers until its endpoint is removed, and does not publish it again meanwhile', async () => {
      await running(scene(), async ({ replica, hold, pass, gets, addresses }) => {
        const proceed = hold(SLICE);
        const before = gets.filter((path) => path === SLICE).length;
        const released = replica.release();
        await pass(12);
        assert.equal(replica.isActive(), true);
        assert.equal(gets.filter((path) => path === SLICE).length, before + 1, 'only the removal');
        proceed();
        await released;
        assert.deepEqual(addresses(), []);
      });
    });

    it('removes its endpoint after a publication that is in progress', async () => {
      const one = scene();
      const proceed = one.hold(SLICE);
      await running(one, async ({ replica, gets, addresses }) => {
        const released = replica.release();
        await flush();
        assert.equal(gets.filter((path) => path === SLICE).length, 1);
        proceed();
        await released;
        assert.deepEqual(addresses(), []);
      });
    });

    it('is not active after its endpoint is removed, even while a renewal of its Lease is in progress', async () => {
      await running(scene(), async ({ replica, hold, pass, addresses }) => {
        const proceed = hold(LEASE);
        await pass(2.1);
        const released = replica.release();
        await flush();
        assert.deepEqual([addresses(), replica.isActive()], [[], false]);
        proceed();
        await released;
      });
    });
  });
});
