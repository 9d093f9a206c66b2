import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import type { VirtualMachineInstance } from '../../../kube/virtual-machines.ts';
import { createVmiLookup } from '../../../webhook/cluster/cluster-facts.ts';
import { vmiVector } from '../launcher-fixture.ts';

const reference = { name: 'dpdk-fwd-01', uid: vmiVector().metadata.uid ?? '' };

/** @param times clock values for successive reads, in seconds; the last one repeats. Default: time stands still. */
function lookup(cached: VirtualMachineInstance | undefined, answer: unknown, times: readonly number[] = [0]) {
  const asked: string[] = [];
  const get = async (path: string) => {
    asked.push(path);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const client = { get } as unknown as KubeClient;
  const left = [...times];
  const now = () => (left.length > 1 ? left.shift() : left[0]) ?? 0;
  return { asked, lookUp: createVmiLookup({ client, timeout: 1, now, find: () => cached }) };
}

describe('the lookup of a VMI', () => {
  it('sends no request if the watched copy has the VMI and it fits', async () => {
    const { asked, lookUp } = lookup(vmiVector(), new Error('asked'));
    assert.equal((await lookUp('telco-east', reference, () => true)).kind, 'found');
    assert.deepEqual(asked, []);
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
      const { asked, lookUp } = lookup(cached, answer);
      assert.equal((await lookUp('telco-east', reference, () => fits)).kind, expected);
      assert.deepEqual(asked, ['/apis/kubevirt.io/v1/namespaces/telco-east/virtualmachineinstances/dpdk-fwd-01']);
    });
  }
});

it('a request for a VMI ends when the time of the lookup ends', async () => {
  const timeouts: (number | undefined)[] = [];
  const get = async (_: string, options?: { readonly timeout?: number }) => {
    timeouts.push(options?.timeout);
    return vmiVector();
  };
  const client = { get } as unknown as KubeClient;
  const times = [10, 10.75];
  const lookUp = createVmiLookup({ client, timeout: 1, now: () => times.shift() ?? 10.75, find: () => undefined });
  await lookUp('telco-east', reference, () => true);
  assert.deepEqual(timeouts, [0.25]);
});

describe('the lookup of a VMI while the API server is slow or briefly down', () => {
  const passing: [name: string, error: KubeError][] = [
    ['a broken connection', new KubeError(0, 'Unreachable', 'socket hang up')],
    ['a server error', new KubeError(500, 'InternalError', 'etcd')],
  ];
  for (const [name, error] of passing) {
    it(`retries after ${name}`, async () => {
      let asked = 0;
      const get = async () => {
        if (++asked < 3) throw error;
        return vmiVector();
      };
      const client = { get } as unknown as KubeClient;
      const lookUp = createVmiLookup({ client, timeout: 60, now: () => 0, find: () => undefined });
      assert.equal((await lookUp('telco-east', reference, () => true)).kind, 'found');
      assert.equal(asked, 3);
    });

    it(`gives up after ${name} when its time is over, and returns the reason`, async () => {
      const { asked, lookUp } = lookup(undefined, error, [0, 0, 0, 0.9]);
      const found = await lookUp('telco-east', reference, () => true);
      assert.deepEqual(found, { kind: 'unreadable', why: error.message });
      assert.equal(asked.length, 2);
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
