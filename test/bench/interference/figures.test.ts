import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { interferenceChart } from '../../../bench/interference/chart.ts';
import { CONTENDERS, TITLES } from '../../../bench/interference/contenders.ts';
import { DELAYS, delayAt, figuresOf, shareLonger } from '../../../bench/interference/figures.ts';
import { interferenceTable } from '../../../bench/interference/page.ts';
import { readResults } from '../../../bench/interference/results.ts';
import { root } from '../../support/bundles.ts';

/**
 * The delay of an arrival at each of many moments, by walking through the time: gaps come first, one after the other.
 */
function delaysBySampling(gaps: readonly number[], nanos: number, samples: number): number[] {
  const ends = gaps.map((_, i) => gaps.slice(0, i + 1).reduce((sum, gap) => sum + gap, 0));
  return Array.from({ length: samples }, (_, i) => {
    const moment = ((i + 0.5) * nanos) / samples;
    const end = ends.find((each) => each > moment);
    return end === undefined ? 0 : end - moment;
  }).sort((a, b) => a - b);
}

describe('figures of the interference benchmark', () => {
  const gaps = [4000, 150_000, 2500, 90_000, 90_000, 1200];
  const nanos = 2_000_000;
  const samples = 200_000;
  const sampled = delaysBySampling(gaps, nanos, samples);

  it('a delay quantile matches arrivals at every moment', () => {
    for (const share of [0.5, 0.85, 0.9, 0.95, 0.99, 0.999]) {
      const expected = sampled[Math.ceil(share * samples) - 1] ?? 0;
      const found = delayAt(gaps, nanos, share);
      assert.ok(Math.abs(found - expected) < 20, `${share}: ${found}, sampled ${expected}`);
    }
  });

  it('the share of longer delays matches arrivals at every moment', () => {
    for (const micros of DELAYS) {
      const expected = sampled.filter((delay) => delay > micros * 1000).length / samples;
      const found = shareLonger(gaps, nanos, micros * 1000);
      assert.ok(Math.abs(found - expected) < 1e-4, `${micros} us: ${found}, sampled ${expected}`);
    }
  });

  it('times and gaps of all threads are added', () => {
    const figures = figuresOf([
      { nanos: 1_000_000, waited: 100_000, gaps: [100_000] },
      { nanos: 3_000_000, waited: 100_000, gaps: [60_000, 40_000] },
    ]);
    assert.equal(figures.stolen, 0.05);
    assert.equal(figures.max, 100);
    // 1 % of 4 ms is 40 us: the last 60 us of the gap of 100 us contain the rest.
    assert.equal(Math.round(figures.p99 * 1000), 60_000);
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
