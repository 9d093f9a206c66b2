import assert from 'node:assert/strict';
import { type KubeClient, KubeError, type RequestOptions } from '../../kube/client.ts';
import type { VirtualMachineInstance } from '../../kube/virtual-machines.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import type { NetworkRef } from '../../model/networks/attachments.ts';
import { nadFacts } from '../../model/networks/nad.ts';
import { parseNames } from '../../runtime/certificate.ts';
import { createVmiLookup, gatherCluster } from '../../webhook/cluster/cluster-facts.ts';
import { DefinitionLookups } from '../../webhook/cluster/definition-lookups.ts';
import { recordingLogger } from '../support/logger.ts';
import { kindOf, localnet, viewOf, vmiVector } from './launcher-fixture.ts';

describe('reading network definitions', () => {
  const config = JSON.stringify({ type: 'ovs', bridge: 'br' });
  const east = { metadata: { name: 'east' }, spec: { config } };
  const lookups = (answer: () => Promise<unknown>) => {
    const clock = { now: 100 };
    const requests: string[] = [];
    const { log, lines } = recordingLogger();
    const get = (path: string) => {
      requests.push(path.split('/')[5] ?? '');
      return answer();
    };
    const client = { get } as unknown as KubeClient;
    const reader = new DefinitionLookups({ client, timeoutSeconds: 3, log, nowSeconds: () => clock.now });
    const find = (name: string, namespace = 'tenant') => reader.find({ namespace, name });
    return { find, clock, requests, lines };
  };
  const listed = async () => ({ metadata: { resourceVersion: '1' }, items: [east, { metadata: {} }] });

  it('lists a namespace at most once in a second, whatever is named', async () => {
    const { find, clock, requests } = lookups(listed);
    const names = Array.from({ length: 128 }, (_, i) => `absent-${i}`);
    const [found, ...others] = await Promise.all(['east', ...names, ...names].map((name) => find(name)));
    assert.deepEqual(found, nadFacts(east));
    assert.deepEqual([...new Set(others)], [undefined]);
    await find('east', 'other');
    assert.deepEqual(requests, ['tenant', 'other']);
    clock.now += 1;
    await Promise.all([find('east'), find('b')]);
    assert.deepEqual(requests, ['tenant', 'other', 'tenant']);
  });

  it('sends no request without a namespace or a name', async () => {
    const { find, requests } = lookups(listed);
    assert.deepEqual([await find('a', ''), await find('')], [undefined, undefined]);
    assert.deepEqual(requests, []);
  });

  it('finds nothing and logs nothing if there are no definitions, but logs other failures', async () => {
    const absent = lookups(() => Promise.reject(new KubeError(404, 'NotFound', 'gone')));
    const failed = lookups(() => Promise.reject(new KubeError(500, 'InternalError', 'broken')));
    for (const { find } of [absent, failed]) assert.equal(await find('east'), undefined);
    assert.deepEqual([absent.lines.length, failed.lines.length], [0, 1]);
  });
});
describe('the cluster facts for one VM', () => {
  interface Vm {
    readonly annotations?: Record<string, string>;
    readonly networkName?: string;
    readonly oversized?: 'refuse' | 'warn';
    readonly globalNetworkNamespaces?: string;
  }
  const gather = (
    { annotations = {}, networkName = 'east', oversized = 'refuse', globalNetworkNamespaces = 'default' }: Vm,
    facts: Parameters<typeof viewOf>[1] = {},
    fetchNad: (ref: NetworkRef) => ReturnType<typeof localnet> | undefined = () => undefined,
  ) => {
    const vmi = vmiVector(({ metadata, spec }) => {
      metadata.annotations = annotations;
      spec.networks = [{ name: 'a', multus: { networkName } }] as never;
    });
    const options = {
      view: viewOf([kindOf(2)], facts),
      fetchNad: async (ref: NetworkRef) => fetchNad(ref),
      oversized,
      globalNetworkNamespaces: parseNames(globalNetworkNamespaces),
    };
    return gatherCluster({ namespace: 'tenant', vmi, exclusive: true }, {}, options);
  };

  it('take definitions from the watch, and read others', async () => {
    const watched = await gather({}, { findNad: () => localnet('east') });
    assert.deepEqual([...watched.networks.definitions.keys()], ['tenant/east']);
    const read = await gather({}, {}, () => localnet('west'));
    assert.deepEqual(read.networks.definitions.get('tenant/east'), localnet('west'));
    assert.equal((await gather({})).networks.definitions.size, 0);
  });

  /** `namespace/name` of each definition that was looked up, in the watched copy and in the API server. */
  const lookedUp = async (networkName: string, globalNetworkNamespaces: string) => {
    const lookups: string[] = [];
    const find = (ref: { readonly namespace: string; readonly name: string }) => {
      lookups.push(`${ref.namespace}/${ref.name}`);
      return undefined;
    };
    const { networks } = await gather({ networkName, globalNetworkNamespaces }, { findNad: find }, find);
    assert.equal(networks.definitions.size, 0);
    return lookups;
  };
  for (const [what, network, namespaces, isRead] of [
    ['of its own namespace', 'east', 'default', true],
    ['of a global namespace', 'default/east', 'default', true],
    ['of another global namespace', 'shared/east', 'default, shared', true],
    ['of a foreign namespace', 'other/east', 'default', false],
    ['of a foreign namespace if all are global', 'other/east', '*', true],
  ] as const)
    it(`a definition ${what} is ${isRead ? 'read' : 'not read'} for a VM`, async () => {
      const name = network.includes('/') ? network : `tenant/${network}`;
      assert.deepEqual(await lookedUp(network, namespaces), isRead ? [name, name] : []);
    });

  it('include definitions of at most eight other namespaces', async () => {
    const fetched = new Set<string>();
    const networks = Array.from({ length: 20 }, (_, i) => `n${i}/east`).join();
    const pod = { metadata: { annotations: { 'k8s.v1.cni.cncf.io/networks': networks } }, spec: { containers: [] } };
    const fetchNad = async ({ namespace }: NetworkRef) => void fetched.add(namespace);
    const options = {
      view: viewOf(),
      fetchNad,
      oversized: 'refuse',
      globalNetworkNamespaces: parseNames('*'),
    } as const;
    await gatherCluster({ namespace: 'tenant', pod, exclusive: true } as never, {}, options);
    assert.equal(fetched.size, 8);
  });

  it('are gathered despite a malformed annotation, but not after a programming error', async () => {
    const { candidates } = await gather({ annotations: { [NUMA_AFFINITY_ANNOTATION]: 'no JSON' } });
    assert.equal(candidates.length, 1);
    const findNad = () => {
      throw new TypeError('a mistake');
    };
    await assert.rejects(gather({}, { findNad }), TypeError);
  });

  it('show whether all nodes report only if this can affect the decision', async () => {
    const there = { findNad: () => localnet('east') };
    const named = { annotations: { [NUMA_AFFINITY_ANNOTATION]: '{"a":"required"}' } };
    assert.equal((await gather({}, there)).allReport, true);
    assert.equal((await gather(named)).allReport, true);
    assert.equal((await gather({})).allReport, false, 'no network can be required');
    assert.equal((await gather({ oversized: 'warn' }, there)).allReport, false, 'nothing is refused');
    assert.equal((await gather({}, { ...there, allReport: () => false })).allReport, false);
  });
});

const reference = { name: 'dpdk-fwd-01', uid: vmiVector().metadata.uid ?? '' };
interface Lookup {
  readonly cached?: VirtualMachineInstance | undefined;
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
  const nowSeconds = () => (left.length > 1 ? left.shift() : left[0]) ?? 0;
  const find = createVmiLookup({ client: { get } as unknown as KubeClient, timeout, nowSeconds, find: () => cached });
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
  type Row = readonly [name: string, cached: unknown, answer: unknown, expected: string, fits?: boolean];
  const cases: readonly Row[] = [
    ['a miss', undefined, vmiVector(), 'found'],
    ['another uid in the copy', other, vmiVector(), 'found'],
    ['a copy that does not fit', vmiVector(), vmiVector(), 'found', false],
    ['another uid at the API server', undefined, other, 'replaced'],
    ['a 404', undefined, new KubeError(404, 'NotFound', 'gone'), 'absent'],
    ['an invalid object', undefined, { spec: 7 }, 'unreadable'],
  ];
  for (const [name, cached, answer, expected, fits = true] of cases)
    it(`W6: sends one request after ${name}: ${expected}`, async () => {
      const { requests, lookUp } = lookup({
        cached: cached as VirtualMachineInstance | undefined,
        answer: () => answer,
      });
      assert.equal((await lookUp(fits)).kind, expected);
      const path = '/apis/kubevirt.io/v1/namespaces/telco-east/virtualmachineinstances/dpdk-fwd-01';
      assert.deepEqual(requests, [{ path, timeout: 60 }]);
    });

  it('ends a request when the time of the lookup ends', async () => {
    const { requests, lookUp } = lookup({ answer: () => vmiVector(), timeout: 1, times: [10, 10.75] });
    await lookUp();
    assert.deepEqual([requests[0]?.timeout, requests.length], [0.25, 1]);
  });

  for (const [name, error] of [
    ['a broken connection', new KubeError(0, 'Unreachable', 'socket hang up')],
    ['a server error', new KubeError(500, 'InternalError', 'etcd')],
    ['a limit of requests', new KubeError(429, 'TooManyRequests', 'later')],
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
    const lookUp = createVmiLookup({ client, timeout: 60, nowSeconds: () => 0, find: () => cached });
    const lookup = await lookUp('telco-east', reference, () => ++looks > 2);
    assert.equal(lookup.kind, 'found');
    assert.equal(looks, 3);
    assert.ok(signal?.aborted);
  });
});
