import assert from 'node:assert/strict';
import { FLEETS, hostOf, reservedOf, VF_RESOURCE } from '../../../bench/outcome/fleets.ts';
import { fingerprint, resourceTopologyOf } from '../../../bench/outcome/resource-topology.ts';
import { xxhash64 } from '../../../bench/outcome/xxhash64.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { type EmulatedKubelet, rulesOf } from '../../../sandbox/kubelet/managers.ts';

describe('XXH64', () => {
  // Source: the vectors of the specification and of its ports.
  const cases: readonly (readonly [text: string, seed: bigint, sum: string])[] = [
    ['', 0n, 'ef46db3751d8e999'],
    ['abc', 0n, '44bc2cf5ad770999'],
    ['xxhash', 20141025n, 'b559b98d844e0635'],
  ];
  for (const [text, seed, sum] of cases) {
    it(`of "${text}" with the seed ${seed}`, () => {
      assert.equal(xxhash64(Buffer.from(text), seed).toString(16).padStart(16, '0'), sum);
    });
  }
});

describe('NodeResourceTopology objects of the outcome bench', () => {
  it('have the same fingerprint as from the Go library', () => {
    const names = ['virt-launcher-vm-0-abcde', 'virt-launcher-vm-12345678901234567890-fghij'];
    const pods = [...names.map((name) => ({ namespace: 'tenants', name })), { namespace: 'default', name: 'x' }];
    assert.equal(fingerprint(pods), 'pfp0v0012df1a6735f2ff1fb');
  });

  it('count CPUs and VFs by NUMA node: reserved CPUs are not allocatable, those in use not available', () => {
    const fleet = FLEETS.find(({ name }) => name === '8-smt-2-single-numa-node')!;
    const settings: EmulatedKubelet = {
      version: 'v1.36.2',
      host: createHost(hostOf(fleet)),
      reserved: CpuSet.parse(reservedOf(fleet)),
      cpuManagerPolicy: 'static',
      cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
      topologyManagerPolicy: fleet.policy,
      topologyManagerScope: 'container',
    };
    const assignments = new Map([['uid', new Map([['compute', CpuSet.parse('1-2,17-18,8,24')]])]]);
    const vfs = Array.from({ length: 16 }, (_, i) => ({ id: `${i}`, healthy: true, nodes: [1] }));
    const empty = rulesOf(settings).initialState(new Map([[VF_RESOURCE, { devices: vfs }]]), assignments);
    const devices = new Map([['uid', new Map([['compute', new Map([[VF_RESOURCE, new Set(['3'])]])]])]]);
    const state = { ...empty, devices };
    const { zones, attributes } = resourceTopologyOf({ name: 'node-000', settings, state, pods: new Map() });
    const cpus = zones.map(({ resources: [cpu] }) => [cpu?.capacity, cpu?.allocatable, cpu?.available]);
    assert.deepEqual(cpus, [
      ['16', '14', '10'],
      ['16', '16', '14'],
    ]);
    const ofVfs = zones.map(({ resources }) => resources.find(({ name }) => name === VF_RESOURCE));
    assert.deepEqual(ofVfs, [undefined, { name: VF_RESOURCE, capacity: '16', allocatable: '16', available: '15' }]);
    assert.deepEqual(
      attributes.slice(0, 2).map(({ value }) => value),
      ['single-numa-node', 'container'],
    );
  });
});
