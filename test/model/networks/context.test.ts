import assert from 'node:assert/strict';
import { parseBridgeMappings, parseConfiguredContext, physnetsByBridge } from '../../../model/networks/context.ts';

describe('the context of networks', () => {
  it('has bridge mappings in both directions, and reports ignored pairs', () => {
    const ignored: string[] = [];
    const mappings = parseBridgeMappings(' a : br-a ,, ,b,:br-c,d:,a:br-d,e:f:g,x:br-a', (pair, why) =>
      ignored.push(`${pair} ${why}`),
    );
    assert.deepEqual(
      mappings.map(({ physnet, bridge }) => `${physnet}=${bridge}`),
      ['a=br-a', 'e=f:g', 'x=br-a'],
    );
    assert.deepEqual(ignored, [
      'b maps nothing',
      ':br-c maps nothing',
      'd: maps nothing',
      'a:br-d is the second for its physnet',
    ]);
    assert.deepEqual(parseBridgeMappings('b'), []);
    assert.deepEqual(
      [...physnetsByBridge(mappings)],
      [
        ['br-a', 'a'],
        ['f:g', 'e'],
      ],
    );
  });

  it('is configured by an operator', () => {
    const empty = { bridgePhysnets: new Map(), interfacePhysnets: new Map() };
    assert.deepEqual([parseConfiguredContext({}), parseConfiguredContext(null)], [empty, empty]);
    assert.deepEqual(parseConfiguredContext({ bridgeMappings: 'a:br-a', interfacePhysnets: { bond0: 'b' } }), {
      bridgePhysnets: new Map([['br-a', 'a']]),
      interfacePhysnets: new Map([['bond0', 'b']]),
    });
    assert.throws(() => parseConfiguredContext({ interfacePhysnets: { bond0: '' } }), /interfacePhysnets\.bond0: /);
    assert.throws(() => parseConfiguredContext([]), /context: the whole: /);
  });
});
