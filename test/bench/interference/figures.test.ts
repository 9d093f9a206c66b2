import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DELAYS, figuresOf } from '../../../bench/interference/figures.ts';
import { interferenceChart, interferenceTable } from '../../../bench/interference/page.ts';
import { CONTENDERS, readResults, TITLES } from '../../../bench/interference/results.ts';
import { root } from '../../support/bundles.ts';

describe('figures of the interference benchmark', () => {
  it('times and gaps of all threads are added', () => {
    const figures = figuresOf([
      { nanos: 1_000_000, waited: 100_000, gaps: [100_000] },
      { nanos: 3_000_000, waited: 100_000, gaps: [60_000, 40_000] },
    ]);
    assert.equal(figures.stolen, 0.05);
    assert.equal(figures.max, 100);
    // 1 % of 4 ms is 40 us: the last 60 us of the gap of 100 us contain the rest.
    assert.equal(Math.round(figures.p99 * 1000), 60_000);
    // Of the three gaps, 70, 30 and 10 us are left for delays of more than 30 us.
    assert.equal(figures.longer[DELAYS.indexOf(30)]?.toFixed(4), '0.0275');
    assert.deepEqual(figures.longer.slice(DELAYS.indexOf(100)), [0, 0, 0, 0, 0, 0]);
  });
});

describe('the interference page', () => {
  const results = readResults();
  const read = (name: string) => readFileSync(join(root, 'docs/reference', name), 'utf8');

  it('has the table of the recorded figures', () => {
    assert.ok(read('outcome.md').includes(interferenceTable(results)), 'bench/interference/run.ts --page');
  });

  it('has their chart in the colour scheme of the reader', () => {
    const chart = read('interference.svg');
    assert.equal(chart, interferenceChart(results));
    assert.match(chart, /@media \(prefers-color-scheme: dark\)/);
    for (const one of CONTENDERS) assert.ok(chart.includes(TITLES[one]), one);
  });
});
