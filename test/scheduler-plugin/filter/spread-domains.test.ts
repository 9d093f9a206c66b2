import assert from 'node:assert/strict';
import { createSpread } from '../../../scheduler-plugin/filter/spread.ts';

/** The domain of each node, by its number; 0 is a node without the label. */
const domains = (...ofNode: number[]) => ({
  ofNode: Uint32Array.from(ofNode),
  count: new Set(ofNode.filter(Boolean)).size,
});

describe('the nodes that a soft constraint still wants', () => {
  it('exclude a node without the label and an unknown node', () => {
    const spread = createSpread([domains(0, 1, 2)]);
    assert.deepEqual(
      [0, 1, 2, 3].map((id) => spread.wants(id)),
      [false, true, true, false],
    );
    spread.tried(0, true);
    spread.tried(3, true);
    assert.equal(spread.complete, false, 'those settle no domain');
    assert.deepEqual([spread.wants(1), spread.wants(2)], [true, true]);
    spread.tried(1, true);
    assert.equal(spread.complete, false);
    spread.tried(0, true);
    spread.tried(3, false);
    assert.deepEqual([spread.wants(2), spread.complete], [true, false]);
  });

  it('include one node that fits for each domain', () => {
    const spread = createSpread([domains(1, 1, 2)]);
    spread.tried(0, true);
    assert.deepEqual([spread.wants(1), spread.wants(2), spread.complete], [false, true, false]);
    spread.tried(2, true);
    assert.deepEqual([spread.wants(1), spread.wants(2), spread.complete], [false, false, true]);
  });

  it('exclude a domain after eight nodes that do not fit, which settles it once', () => {
    const spread = createSpread([domains(1, 2)]);
    for (let i = 0; i < 7; i++) spread.tried(0, false);
    assert.deepEqual([spread.wants(0), spread.complete], [true, false]);
    spread.tried(0, false);
    assert.deepEqual([spread.wants(0), spread.complete], [false, false]);
    spread.tried(0, false);
    assert.equal(spread.complete, false, 'the other domain is open');
    spread.tried(1, true);
    assert.equal(spread.complete, true);
  });

  it('are four nodes that fit, or 32 tries, if each node may be a domain', () => {
    const found = createSpread([undefined]);
    for (let i = 0; i < 3; i++) found.tried(i, true);
    assert.deepEqual([found.wants(9), found.complete], [true, false]);
    found.tried(3, true);
    assert.deepEqual([found.wants(9), found.complete], [false, true]);
    const vain = createSpread([undefined]);
    for (let i = 0; i < 31; i++) vain.tried(i, false);
    assert.deepEqual([vain.wants(99), vain.complete], [true, false]);
    vain.tried(31, false);
    assert.deepEqual([vain.wants(99), vain.complete], [false, true]);
  });

  it('are complete after 16 domains, however many there are', () => {
    const spread = createSpread([domains(...Array.from({ length: 20 }, (_, i) => i + 1))]);
    for (let id = 0; id < 15; id++) spread.tried(id, true);
    assert.deepEqual([spread.wants(0), spread.wants(15), spread.complete], [false, true, false]);
    for (let i = 0; i < 8; i++) spread.tried(15, false);
    assert.deepEqual([spread.wants(15), spread.wants(16), spread.complete], [false, true, false]);
    spread.tried(16, true);
    assert.deepEqual([spread.wants(17), spread.complete], [false, true]);
  });

  it('are none without a constraint', () => {
    const spread = createSpread([]);
    assert.deepEqual([spread.wants(0), spread.complete], [false, true]);
  });

  it('include those that any of several constraints wants, until all are complete', () => {
    const spread = createSpread([domains(1, 1), domains(1, 2)]);
    spread.tried(0, true);
    assert.deepEqual([spread.wants(0), spread.wants(1), spread.complete], [false, true, false]);
    spread.tried(1, true);
    assert.equal(spread.complete, true);
  });
});
