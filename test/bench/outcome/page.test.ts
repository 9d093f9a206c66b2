import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONTENDERS, NRT_ASSETS, nrtScheduler, TITLES } from '../../../bench/outcome/contenders.ts';
import { headlineTable, outcomeChart, outcomeTables } from '../../../bench/outcome/page.ts';
import { readResults } from '../../../bench/outcome/results.ts';
import { root } from '../../support/bundles.ts';

describe('the outcome page', () => {
  const results = readResults();
  const page = readFileSync(join(root, 'docs/reference/outcome.md'), 'utf8');

  it('has a table of the recorded figures', () => {
    assert.ok(results.length > 0);
    const machine = /^Measured on a machine with (.*), shared with other work\.$/m.exec(page)?.[1] ?? '';
    assert.ok(page.includes(outcomeTables(results, machine)), 'npx tsx bench/outcome/run.ts --page writes it again');
  });

  it('has its headline in the README', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    assert.ok(readme.includes(headlineTable(results)), 'npx tsx bench/outcome/run.ts --page writes it again');
    assert.throws(() => headlineTable([]), /was not recorded/);
  });

  it('has a chart of them in the colour scheme of the reader', () => {
    const chart = readFileSync(join(root, 'docs/reference/outcome.svg'), 'utf8');
    assert.equal(chart, outcomeChart(results));
    assert.match(chart, /@media \(prefers-color-scheme: dark\)/);
    for (const one of CONTENDERS) assert.ok(chart.includes(TITLES[one]), one);
  });

  it('omits NodeResourceTopologyMatch if no scheduler is configured', () => {
    assert.equal(nrtScheduler({}), undefined);
    assert.equal(nrtScheduler({ [NRT_ASSETS]: join(root, 'docs') }), undefined);
  });
});
