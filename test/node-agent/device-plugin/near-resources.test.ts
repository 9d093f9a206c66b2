import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createNearResources, withoutHint } from '../../../node-agent/device-plugin/near-resources.ts';
import { advertisedResources } from '../../../node-agent/device-plugin/resources.ts';

const networks = (...names: string[]) => ({
  physnets: new Map(names.map((name) => [name, CpuSet.parse('1')])),
  tunnel: CpuSet.parse('0'),
});
const all = (cells: CpuSet) => cells;
const none = () => CpuSet.EMPTY;

describe('resources for preferred networks', () => {
  const brief = (resources: ReturnType<typeof advertisedResources>) =>
    resources.map(({ name, cells, slots, preStart, healthy }) => {
      assert.deepEqual([preStart, healthy], [false, true], 'it never holds up or refuses a pod');
      return `${name} ${slots} [${cells}]`;
    });

  it('are one for each network, with the NUMA nodes that may be named', () => {
    const near = createNearResources();
    assert.deepEqual(brief(near.advertised(networks('east'), 3, all)), [
      'near.plumbline.dev/east 3 [1]',
      'near.plumbline.dev/tunnel 3 [0]',
    ]);
    assert.deepEqual(brief(near.advertised(networks('east'), 3, none)), [
      'near.plumbline.dev/east 3 []',
      'near.plumbline.dev/tunnel 3 []',
    ]);
  });

  it('of a removed network, or of a former agent, name no NUMA node, because a kubelet refuses a count of 0', () => {
    const near = createNearResources();
    near.remember(['cpu', 'physnet.plumbline.dev/old', 'near.plumbline.dev/former']);
    near.advertised(networks('east', 'west'), 3, all);
    assert.deepEqual(brief(near.advertised(networks('west'), 3, all)), [
      'near.plumbline.dev/east 3 []',
      'near.plumbline.dev/former 3 []',
      'near.plumbline.dev/tunnel 3 [0]',
      'near.plumbline.dev/west 3 [1]',
    ]);
  });

  it('name no NUMA node until the kubelet’s configuration is known, and the report follows', () => {
    const near = createNearResources();
    const said: boolean[] = [];
    near.subscribe(() => said.push(near.hinting));
    assert.match(brief(near.advertised(networks('east'), 1, undefined)).join(), /east 1 \[\]/);
    near.advertised(networks('east'), 1, all);
    near.advertised(networks('east'), 1, all);
    near.advertised(networks('east'), 1, undefined);
    assert.deepEqual(said, [true, false]);
  });

  it('are limited in number', () => {
    const near = createNearResources();
    near.remember(Array.from({ length: 5000 }, (_, i) => `near.plumbline.dev/n${i}`));
    assert.equal(near.advertised(networks(), 1, all).length, 256);
  });

  it('name no NUMA node right after the kubelet starts; devices of required networks do', () => {
    const [near] = createNearResources().advertised(networks('east'), 1, all);
    const [required] = advertisedResources(networks('east'), 1);
    assert.deepEqual([withoutHint(near!).cells, withoutHint(required!).cells], [[], [1]]);
  });
});
