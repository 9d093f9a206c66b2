import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { interferenceChart } from '../../../bench/interference/chart.ts';
import { CONTENDERS, TITLES } from '../../../bench/interference/contenders.ts';
import { interferenceTable } from '../../../bench/interference/page.ts';
import { readResults } from '../../../bench/interference/results.ts';
import { root } from '../../support/bundles.ts';

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
