import assert from 'node:assert/strict';
import {
  EVERY_NETWORK,
  interfaceResources,
  preferredResources,
  requiredResources,
} from '../../../model/networks/resources.ts';
import { BRIDGE, EAST, network, TUNNEL } from './fixture.ts';

const NOTHING = { physnets: new Set<string>(), tunnel: false };
const WEST = network({ physnet: 'west', affinity: 'preferred' });

describe('the resources of networks', () => {
  const networks = [network(), network({ name: 'net4' }), TUNNEL, BRIDGE, WEST];

  it('are one for each required network of a pod with exclusive CPUs', () => {
    assert.deepEqual(requiredResources(networks, EVERY_NETWORK, true), {
      resources: [EAST, 'plumbline.dev/tunnel'],
      requiredNetworks: networks.slice(0, 3),
      findings: [],
    });
    const nothing = { resources: [], requiredNetworks: [], findings: [] };
    assert.deepEqual(requiredResources(networks, EVERY_NETWORK, false), nothing);
  });

  it('are not requested if no node reports the network, unless the user requires it: the pod then waits', () => {
    const { resources, requiredNetworks, findings } = requiredResources(
      [TUNNEL, network(), network({ explicit: true })],
      NOTHING,
      true,
    );
    assert.deepEqual([resources, requiredNetworks.length], [[EAST], 1]);
    const required = 'it waits until one does, as the annotation plumbline.dev/numa-affinity requires';
    assert.deepEqual(
      findings.map(({ code, message }) => `${code}: ${message}`),
      [
        'unknown-tunnel: interface net2: no node reports a tunnel endpoint of ns/over; it gets no NUMA affinity',
        'unknown-physnet: interface net1: no node reports the physnet east of ns/east; it gets no NUMA affinity',
        `unknown-physnet: interface net1: no node reports the physnet east of ns/east; ${required}`,
      ],
    );
  });

  it('include preferred ones, and those that matter to their pod', () => {
    assert.deepEqual(preferredResources(networks), ['physnet.plumbline.dev/west']);
    assert.deepEqual(preferredResources([{ ...BRIDGE, affinity: 'preferred' }]), []);
    assert.deepEqual(interfaceResources([...networks, network({ name: 'no', affinity: 'none' })]), [
      [EAST, 'net1'],
      [EAST, 'net4'],
      ['plumbline.dev/tunnel', 'net2'],
      ['physnet.plumbline.dev/west', 'net1'],
    ]);
  });
});
