import assert from 'node:assert/strict';
import { placesOf, SCHEMAS, type Schema, unbounded } from './definition-fixture.ts';

describe('the definition of NodeTopology', () => {
  const places = SCHEMAS.flatMap((schema) => placesOf(schema));
  const at = (holds: (schema: Schema) => boolean) =>
    places.filter(({ schema }) => holds(schema)).map(({ path }) => path);

  it('limits every string, list, map and number', () => {
    assert.ok(places.length >= 80, `${places.length} places`);
    const wrong = places.flatMap(({ path, schema }) => {
      const why = unbounded(schema);
      return why === undefined ? [] : [`${path}: ${why}`];
    });
    assert.deepEqual(wrong, []);
  });

  it('defines the ownership of the parts of every list and map', () => {
    assert.deepEqual(
      at((schema) => schema.type === 'array' && schema['x-kubernetes-list-type'] === undefined),
      [],
    );
    assert.deepEqual(
      at((schema) => schema.additionalProperties !== undefined && schema['x-kubernetes-map-type'] === undefined),
      [],
    );
    const keyed = places.filter(({ schema }) => schema['x-kubernetes-list-type'] === 'map');
    assert.deepEqual(
      keyed.map(({ path, schema }) => [path, schema['x-kubernetes-list-map-keys']]),
      [['.status.conditions', ['type']]],
    );
  });

  it('describes every field', () => {
    const fields = places.filter(({ path }) => !/[\]}]$/.test(path));
    const undescribed = fields.filter(({ schema }) => !/^[A-Z].+\.$/s.test(schema.description ?? ''));
    assert.deepEqual(
      undescribed.map(({ path, schema }) => `${path}: ${schema.description}`),
      [],
    );
  });
});
