import assert from 'node:assert/strict';
import { type KubeClient, KubeError, type RequestOptions } from '../../../kube/client.ts';
import type { VirtualMachineInstance } from '../../../kube/virtual-machines.ts';
import { createVmiLookup } from '../../../webhook/cluster/cluster-facts.ts';
import { vmiVector } from '../launcher-fixture.ts';

const reference = { name: 'dpdk-fwd-01', uid: vmiVector().metadata.uid ?? '' };

interface Lookup {
  readonly cached?: VirtualMachineInstance;
  /** The answer of the API server to a request; an Error rejects it. */
  readonly answer: (request: number) => unknown;
  /** Seconds. */
  readonly timeout?: number;
  /** Clock values for successive reads, in seconds; the last one repeats. Default: time stands still. */
  readonly times?: readonly number[];
}

function lookup({ cached, answer, timeout = 60, times = [0] }: Lookup) {
  const requests: { readonly path: string; readonly timeout: number | undefined }[] = [];
  const get = async (path: string, options: RequestOptions = {}) => {
    requests.push({ path, timeout: options.timeout });
    const reply = answer(requests.length);
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const left = [...times];
  const now = () => (left.length > 1 ? left.shift() : left[0]) ?? 0;
  const find = createVmiLookup({ client: { get } as unknown as KubeClient, timeout, now, find: () => cached });
  const lookUp = (fits = true) => find('telco-east', reference, () => fits);
  return { requests, lookUp };
}

describe('the lookup of a VMI', () => {
  it('sends no request if the watched copy has the VMI and it fits', async () => {
    const { requests, lookUp } = lookup({ cached: vmiVector(), answer: () => new Error('asked') });
    assert.equal((await lookUp()).kind, 'found');
    assert.deepEqual(requests, []);
  });

  const other = vmiVector((vmi) => {
    vmi.metadata.uid = 'other';
  });
  const cases: readonly (readonly [
    name: string,
    cached: VirtualMachineInstance | undefined,
    answer: unknown,
    expected: string,
    fits?: boolean,
  ])[] = [
    ['a miss', undefined, vmiVector(), 'found'],
    ['another uid in the copy', other, vmiVector(), 'found'],
    ['a copy that does not fit', vmiVector(), vmiVector(), 'found', false],
    ['another uid at the API server', undefined, other, 'replaced'],
    ['a 404', undefined, new KubeError(404, 'NotFound', 'gone'), 'absent'],
    ['an invalid object', undefined, { spec: 7 }, 'unreadable'],
  ];
  for (const [name, cached, answer, expected, fits = true] of cases) {
    it(`W6: sends one request after ${name}: ${expected}`, async () => {
      const { requests, lookUp } = lookup({ ...(cached && { cached }), answer: () => answer });
      assert.equal((await lookUp(fits)).kind, expected);
      const path = '/apis/kubevirt.io/v1/namespaces/telco-east/virtualmachineinstances/dpdk-fwd-01';
      assert.deepEqual(requests, [{ path, timeout: 60 }]);
    });
  }

  it('ends a request when the time of the lookup ends', async () => {
    const { requests, lookUp } = lookup({ answer: () => vmiVector(), timeout: 1, times: [10, 10.75] });
    await lookUp();
    assert.deepEqual(
      requests.map(({ timeout }) => timeout),
      [0.25],
    );
  });

  for (const [name, error] of [
    ['a broken connection', new KubeError(0, 'Unreachable', 'socket hang up')],
    ['a server error', new KubeError(500, 'InternalError', 'etcd')],
  ] as const) {
    it(`retries after ${name}`, async () => {
      const { requests, lookUp } = lookup({ answer: (request) => (request < 3 ? error : vmiVector()) });
      assert.equal((await lookUp()).kind, 'found');
      assert.equal(requests.length, 3);
    });

    it(`gives up after ${name} when its time is over, and returns the reason`, async () => {
      const { requests, lookUp } = lookup({ answer: () => error, timeout: 1, times: [0, 0, 0, 0.9] });
      assert.deepEqual(await lookUp(), { kind: 'unreadable', why: error.message });
      assert.equal(requests.length, 2);
    });
  }

  it('uses the watched copy when it fits while the API server does not answer, and cancels the request', async () => {
    let cached: VirtualMachineInstance | undefined;
    let looks = 0;
    let signal: AbortSignal | undefined;
    const get = (_path: string, options: { signal: AbortSignal }) => {
      ({ signal } = options);
      cached = vmiVector();
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('given up'))));
    };
    const client = { get } as unknown as KubeClient;
    const lookUp = createVmiLookup({ client, timeout: 60, now: () => 0, find: () => cached });
    const found = await lookUp('telco-east', reference, () => ++looks > 2);
    assert.equal(found.kind, 'found');
    assert.equal(looks, 3);
    assert.ok(signal?.aborted);
  });
});
