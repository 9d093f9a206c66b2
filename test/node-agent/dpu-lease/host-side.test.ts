import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { KubeError } from '../../../kube/client.ts';
import { DPU_LEASE_HOLDER } from '../../../model/names.ts';
import { createDpuHostLease, createLeaseRelease } from '../../../node-agent/dpu-lease/dpu-host.ts';
import { createFakeApi, type FakeApi } from '../api-stand-in.ts';
import { recordingLogger, turns } from '../support.ts';

const NODE = 'worker-1';
const lease = { namespace: 'ovn-kubernetes', name: `ovn-dpu-${NODE}` };
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${lease.namespace}/leases/${lease.name}`;

const RENEWED = '2026-01-01T00:00:00.000000Z';

describe('the host’s side of a DPU’s Lease, round by round', () => {
  let api: FakeApi;
  let reads: number;
  let stop: AbortController;
  let done: Promise<void>;
  let logged: ReturnType<typeof recordingLogger>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    api = createFakeApi(NODE);
    reads = 0;
    const { get } = api.client;
    api.client.get = (path, ...more) => {
      if (path === PATH) reads++;
      return get(path, ...more);
    };
    stop = new AbortController();
    logged = recordingLogger();
  });
  afterEach(async () => {
    stop.abort();
    mock.timers.reset();
    await done;
  });

  const pass = async (seconds: number) => {
    mock.timers.tick(seconds * 1000);
    await turns();
  };
  const leaseOf = (holderIdentity: string) =>
    void api.objects.set(PATH, {
      metadata: { name: lease.name },
      spec: { holderIdentity, leaseDurationSeconds: 40, renewTime: RENEWED },
    });
  const specNow = () => (api.objects.get(PATH) as { spec: object }).spec;
  const messages = () => logged.lines.map(({ level, msg }) => `${level} ${msg}`);
  const refuse = (error: KubeError) => {
    api.client.patch = () => Promise.reject(error);
  };
  const release = async () => {
    done = createLeaseRelease({ client: api.client, lease, log: logged.log }).run(stop.signal);
    await turns();
  };
  const tend = async () => {
    const timing = { renewInterval: 10, duration: 40 };
    done = createDpuHostLease({ client: api.client, nodeName: NODE, lease, timing, log: logged.log }).run(stop.signal);
    await turns();
  };

  it('release: looks once a minute, also while there is none', async () => {
    await release();
    assert.equal(reads, 1);
    await pass(59.999);
    assert.equal(reads, 1);
    await pass(0.001);
    assert.equal(reads, 2);
    leaseOf('someone');
    await pass(60);
    assert.deepEqual(messages(), ['30 DPU lease released; health check off']);
    assert.equal(logged.lines[0]?.['lease'], `${lease.namespace}/${lease.name}`);
    await pass(60);
    assert.equal(reads, 4);
    assert.deepEqual(api.writes, [`PATCH ${PATH}`], 'released once');
    assert.deepEqual(specNow(), { holderIdentity: '', leaseDurationSeconds: 40, renewTime: RENEWED });
  });

  it('release: tries again five seconds after a failure, which is logged once, and its end', async () => {
    leaseOf('someone');
    const { patch } = api.client;
    refuse(new KubeError(500, 'InternalError', 'no'));
    await release();
    await pass(4.999);
    assert.equal(reads, 1);
    await pass(0.001);
    assert.equal(reads, 2);
    const FAILED = '40 releasing the DPU lease failed; retrying';
    assert.deepEqual(messages(), [FAILED]);
    api.client.patch = patch;
    await pass(5);
    assert.deepEqual(messages(), [FAILED, '30 DPU lease released; health check off', '30 recovered']);
  });

  it('creates it: duration, holder, owned by the node, never renewed', async () => {
    await tend();
    const { metadata, spec } = api.objects.get(PATH) as { metadata: { ownerReferences: unknown[] }; spec: object };
    assert.deepEqual(spec, { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40 });
    assert.deepEqual(metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'node-uid-1', controller: true, blockOwnerDeletion: false },
    ]);
    await pass(100);
    assert.equal(api.writes.length, 1, 'and leaves it alone');
  });

  it('care: looks in each renewal interval, repairs only what is wrong and keeps the DPU’s renewal', async () => {
    await tend();
    assert.deepEqual(messages(), ['30 DPU lease created; waiting for the DPU to renew it']);
    assert.deepEqual(
      [logged.lines[0]?.['lease'], logged.lines[0]?.['durationSeconds']],
      [`${lease.namespace}/${lease.name}`, 40],
    );
    await pass(9.999);
    assert.equal(reads, 1);
    await pass(0.001);
    assert.equal(reads, 2);
    leaseOf('someone');
    await pass(10);
    assert.deepEqual(specNow(), { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40, renewTime: RENEWED });
    assert.deepEqual(messages().slice(1), ['40 DPU lease repaired']);
    assert.equal(logged.lines[1]?.['lease'], `${lease.namespace}/${lease.name}`);
    assert.deepEqual(logged.lines[1]?.['reasons'], ['no-owner', 'holder']);
    await pass(10);
    assert.equal(api.writes.length, 2, 'created and repaired');
  });

  const failures: [what: string, error: KubeError, logged: string[]][] = [
    ['another client wrote it first', new KubeError(409, 'Conflict', 'changed'), []],
    ['another client created it first', new KubeError(409, 'AlreadyExists', 'exists'), []],
    ['any other failure', new KubeError(500, 'Error', 'no'), ['40 maintaining the DPU lease failed; retrying']],
  ];
  for (const [what, error, expected] of failures) {
    it(`care: looks again after a failure, with a log line only for a defect: ${what}`, async () => {
      leaseOf('someone');
      refuse(error);
      await tend();
      await pass(10);
      assert.deepEqual([reads, messages()], [2, expected]);
    });
  }
});
