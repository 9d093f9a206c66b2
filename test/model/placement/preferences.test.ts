import assert from 'node:assert/strict';
import { physnetResource, TUNNEL_RESOURCE } from '../../../model/names.ts';
import {
  formatPreferences,
  interfacesBy,
  NO_PREFERENCES,
  neededNetworks,
  networkOfResource,
  parsePreferences,
} from '../../../model/placement/preferences.ts';

const EAST = physnetResource('east');
const WEST = physnetResource('west');
const full = {
  preferred: [EAST, TUNNEL_RESOURCE],
  spansCells: true,
  interfaces: { [EAST]: 'net1, net2' },
  guestThreads: 2,
};
const many = (count: number) => Array.from({ length: count }, (_, i) => physnetResource(`p${i}`));
const objectOf = (names: readonly string[], value: string) => Object.fromEntries(names.map((name) => [name, value]));

describe('model/placement: preferences in an annotation', () => {
  it('are the same after they are written and read', () => {
    for (const one of [full, NO_PREFERENCES, { ...NO_PREFERENCES, spansCells: true }, { ...full, spansCells: false }])
      assert.deepEqual(parsePreferences(formatPreferences(one)), one);
    assert.equal(formatPreferences(NO_PREFERENCES), '{}');
    assert.equal(formatPreferences({ ...NO_PREFERENCES, spansCells: true }), '{"spansCells":true}');
  });

  it('are none in a text that cannot be read', () => {
    for (const text of [undefined, '', 'x', '[]', 'null', '3'])
      assert.deepEqual(parsePreferences(text), NO_PREFERENCES);
  });

  it('are read field by field, up to 64 networks and 200 characters of names', () => {
    const read = (changes: object) => parsePreferences(JSON.stringify({ ...full, ...changes }));
    const cases: [object, object][] = [
      [{ preferred: 'x' }, { preferred: [] }],
      [{ preferred: [1] }, { preferred: [] }],
      [{ spansCells: 'x' }, { spansCells: false }],
      [{ interfaces: [] }, { interfaces: {} }],
      [{ guestThreads: 'x' }, { guestThreads: 1 }],
      [{ guestThreads: 9 }, { guestThreads: 1 }],
      [{ guestThreads: 0 }, { guestThreads: 1 }],
      [{ interfaces: { [EAST]: 1 } }, { interfaces: {} }],
      [{ preferred: many(64) }, { preferred: many(64) }],
      [{ preferred: many(65) }, { preferred: [] }],
      [{ interfaces: objectOf(many(64), 'x') }, { interfaces: objectOf(many(64), 'x') }],
      [{ interfaces: objectOf(many(65), 'x') }, { interfaces: {} }],
      [{ interfaces: { [EAST]: 'x'.repeat(200) } }, { interfaces: { [EAST]: 'x'.repeat(200) } }],
      [{ interfaces: { [EAST]: 'x'.repeat(201) } }, { interfaces: {} }],
    ];
    for (const [changes, expected] of cases) assert.deepEqual(read(changes), { ...full, ...expected });
  });

  it('name up to four interfaces of a network, in a text that can be read again', () => {
    const of = (names: readonly string[]) => interfacesBy(names.map((name) => [EAST, name]))[EAST];
    assert.deepEqual(
      interfacesBy([
        [EAST, 'a'],
        [WEST, 'b'],
        [EAST, 'c'],
      ]),
      { [EAST]: 'a, c', [WEST]: 'b' },
    );
    assert.equal(of(['a', 'b', 'c', 'd']), 'a, b, c, d');
    assert.equal(of(['a', 'b', 'c', 'd', 'e', 'f']), 'a, b, c, d, and 2 more');
    assert.equal(of(['x'.repeat(63)]), 'x'.repeat(63));
    assert.equal(of(['x'.repeat(64)]), `${'x'.repeat(62)}…`);
    const longest = of(['w', 'x', 'y', 'z'].map((letter) => letter.repeat(63)));
    assert.ok(longest?.startsWith(`${'w'.repeat(63)}, x`) && longest.endsWith('…'), longest);
    const interfaces = interfacesBy(many(70).map((resource) => [resource, 'w'.repeat(63)]));
    assert.deepEqual(Object.keys(interfaces), many(64));
    const cutText = { ...full, interfaces: { [EAST]: longest ?? '' } };
    assert.deepEqual(parsePreferences(formatPreferences(cutText)), cutText);
  });
});

describe('model/placement: networks of a pod', () => {
  it('are those of its device resources, required, and others that it prefers', () => {
    assert.deepEqual(neededNetworks([EAST, 'openshift.io/nic'], full), [
      { name: 'net1, net2', kind: 'physnet', physnet: 'east', affinity: 'required' },
      { name: '', kind: 'tunnel', affinity: 'preferred' },
    ]);
    const twice = {
      ...NO_PREFERENCES,
      preferred: [WEST, WEST, 'x/y'],
      interfaces: { [WEST]: 'b', [TUNNEL_RESOURCE]: 't' },
    };
    assert.deepEqual(neededNetworks([TUNNEL_RESOURCE, TUNNEL_RESOURCE], twice), [
      { name: 't', kind: 'tunnel', affinity: 'required' },
      { name: 'b', kind: 'physnet', physnet: 'west', affinity: 'preferred' },
    ]);
    assert.deepEqual(neededNetworks([], NO_PREFERENCES), []);
  });

  it('are not other devices', () => {
    assert.equal(networkOfResource('openshift.io/nic', 'required'), undefined);
    assert.deepEqual(networkOfResource(TUNNEL_RESOURCE, 'none', 'x'), { name: 'x', kind: 'tunnel', affinity: 'none' });
  });
});
