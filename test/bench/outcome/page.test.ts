import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { outcomeChart } from '../../../bench/outcome/chart.ts';
import { headlineTable, outcomeTables } from '../../../bench/outcome/page.ts';
import { readResults } from '../../../bench/outcome/results.ts';
import { root } from '../../support/bundles.ts';

describe('the outcome page', () => {
  const results = readResults();
  const page = readFileSync(join(root, 'docs/reference/outcome.md'), 'utf8');

  it('has a table of the recorded figures', () => {
    const machine = /^Measured on a machine with (.*), shared with other work\.$/m.exec(page)?.[1] ?? '';
    assert.ok(page.includes(outcomeTables(results, machine)), 'npx tsx bench/outcome/run.ts --page writes it again');
  });

  it('has its headline in the README', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    assert.ok(readme.includes(headlineTable(results)), 'npx tsx bench/outcome/run.ts --page writes it again');
  });

  it('has a chart of them', () => {
    const chart = readFileSync(join(root, 'docs/reference/outcome.svg'), 'utf8');
    assert.equal(chart, outcomeChart(results));
  });
});
