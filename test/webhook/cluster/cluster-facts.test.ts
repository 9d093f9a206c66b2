import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../../model/names.ts';
import { parseNames } from '../../../runtime/certificate.ts';
import { createNadFetch, gatherCluster } from '../../../webhook/cluster/cluster-facts.ts';
import { recordingLogger } from '../../support/logger.ts';
import { kindOf, localnet, viewOf, vmiVector } from '../launcher-fixture.ts';

const REF = { namespace: 'tenant', name: 'east' };

describe('reading one network definition', () => {
  const fetchOf = (answer: () => Promise<unknown>) => {
    const asked: unknown[] = [];
    const { log, lines } = recordingLogger();
    const client = {
      get: (path: string, options: unknown) => {
        asked.push([path, options]);
        return answer();
      },
    } as unknown as KubeClient;
    return { fetch: createNadFetch(client, 3, log), asked, lines };
  };
  const config = JSON.stringify({
    type: 'ovn-k8s-cni-overlay',
    name: 'n',
    netAttachDefName: 'ns/n',
    topology: 'localnet',
    physicalNetworkName: 'east',
  });

  it('requests it by namespace and name, with a timeout', async () => {
    const { fetch, asked } = fetchOf(async () => ({ metadata: {}, spec: { config } }));
    assert.deepEqual(await fetch({ namespace: 'tenant', name: 'a/b' }), localnet('east'));
    const path = '/apis/k8s.cni.cncf.io/v1/namespaces/tenant/network-attachment-definitions/a%2Fb';
    assert.deepEqual(asked, [[path, { timeout: 3 }]]);
  });

  it('sends no request without a namespace or a name', async () => {
    const { fetch, asked } = fetchOf(async () => ({ metadata: {}, spec: { config } }));
    assert.equal(await fetch({ namespace: '', name: 'a' }), undefined);
    assert.equal(await fetch({ namespace: 'a', name: '' }), undefined);
    assert.deepEqual(asked, []);
  });

  it('finds nothing and logs nothing if there is no definition, but logs other failures', async () => {
    const absent = fetchOf(() => Promise.reject(new KubeError(404, 'NotFound', 'gone')));
    assert.equal(await absent.fetch(REF), undefined);
    assert.equal(absent.lines.length, 0);
    const failed = fetchOf(() => Promise.reject(new KubeError(500, 'InternalError', 'broken')));
    assert.equal(await failed.fetch(REF), undefined);
    assert.equal(failed.lines.length, 1);
  });
});

describe('the cluster facts for one VM', () => {
  const vmiWith = (annotations: Record<string, string>) =>
    vmiVector((vmi) => {
      vmi.metadata.annotations = annotations;
      vmi.spec.networks = [{ name: 'a', multus: { networkName: 'east' } }] as never;
    });
  const gather = (
    { annotations = {}, oversized = 'refuse' }: { annotations?: Record<string, string>; oversized?: 'refuse' | 'warn' },
    facts: Parameters<typeof viewOf>[1] = {},
    fetched: (ref: object) => ReturnType<typeof localnet> | undefined = () => undefined,
  ) =>
    gatherCluster(
      { namespace: 'tenant', vmi: vmiWith(annotations), exclusive: true },
      {},
      {
        view: viewOf([kindOf(2)], facts),
        fetchNad: async (ref) => fetched(ref),
        oversized,
        globalNetworkNamespaces: new Set(['default']),
      },
    );

  it('take definitions from the watch, and read others', async () => {
    const watched = await gather({}, { findNad: () => localnet('east') });
    assert.deepEqual([...watched.networks.definitions.keys()], ['tenant/east']);
    const read = await gather({}, {}, () => localnet('west'));
    assert.deepEqual(read.networks.definitions.get('tenant/east'), localnet('west'));
    assert.equal((await gather({})).networks.definitions.size, 0);
  });

  /** `namespace/name` of each definition that was looked up, in the watched copy and in the API server. */
  const lookedUp = async (networkName: string, globalNetworkNamespaces: string) => {
    const vmi = vmiVector(({ spec }) => {
      spec.networks = [{ name: 'a', multus: { networkName } }] as never;
    });
    const lookups: string[] = [];
    const find = (ref: { namespace: string; name: string }) => {
      lookups.push(`${ref.namespace}/${ref.name}`);
      return undefined;
    };
    const options = {
      view: viewOf([kindOf(2)], { findNad: find }),
      fetchNad: async (ref: { namespace: string; name: string }) => find(ref),
      oversized: 'refuse',
      globalNetworkNamespaces: parseNames(globalNetworkNamespaces),
    } as const;
    const { networks } = await gatherCluster({ namespace: 'tenant', vmi, exclusive: true }, {}, options);
    assert.equal(networks.definitions.size, 0);
    return lookups;
  };
  for (const [what, network, namespaces, isRead] of [
    ['of its own namespace', 'east', 'default', true],
    ['of a global namespace', 'default/east', 'default', true],
    ['of another global namespace', 'shared/east', 'default, shared', true],
    ['of a foreign namespace', 'other/east', 'default', false],
    ['of a foreign namespace if all are global', 'other/east', '*', true],
  ] as const) {
    it(`a definition ${what} is ${isRead ? 'read' : 'not read'} for a VM`, async () => {
      const name = network.includes('/') ? network : `tenant/${network}`;
      assert.deepEqual(await lookedUp(network, namespaces), isRead ? [name, name] : []);
    });
  }

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
