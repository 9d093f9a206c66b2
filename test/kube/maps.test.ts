import assert from 'node:assert/strict';
import { resourceList, textMap } from '../../kube/maps.ts';

describe('maps of API objects', () => {
  const issuesOf = (map: typeof textMap, input: unknown) => {
    const { error } = map.safeParse(input);
    return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };

  it('stay unchanged', () => {
    const labels = { a: '1', b: '' };
    assert.equal(textMap.parse(labels), labels);
    assert.equal(resourceList.parse(labels), labels);
    assert.deepEqual(textMap.parse({}), {});
  });

  it('are absent if Go has written null', () => {
    for (const map of [textMap, resourceList]) {
      assert.deepEqual([map.parse(null), map.parse(undefined)], [undefined, undefined]);
    }
  });

  it('accept a number as an amount, and do not change their input', () => {
    const given = { cpu: 2, memory: '1Gi' };
    assert.deepEqual(resourceList.parse(given), { cpu: '2', memory: '1Gi' });
    assert.deepEqual(given, { cpu: 2, memory: '1Gi' });
  });

  it('name each entry of a wrong type', () => {
    assert.deepEqual(issuesOf(textMap, { a: 'x', b: 2, c: null }), [
      'b: Invalid input: expected string, received number',
      'c: Invalid input: expected string, received null',
    ]);
    assert.deepEqual(issuesOf(resourceList, { cpu: {} }), ['cpu: Invalid input: expected string, received object']);
  });

  it('are refused if they are not maps', () => {
    assert.deepEqual(issuesOf(textMap, 'a=b'), [': Invalid input: expected record, received string']);
    assert.deepEqual(issuesOf(textMap, ['a']), [': Invalid input: expected record, received array']);
  });
});
