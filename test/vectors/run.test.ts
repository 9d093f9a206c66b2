import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UpstreamCase, UpstreamFile } from './kubelet-upstream.ts';
import { runFile, runVectors } from './run.ts';

const PAGE = 'docs/reference/compatibility.md';
const MANAGERS = {
  'CPU manager': 'kubelet-cpu-assignment-cases',
  'topology manager': 'kubelet-topologymanager-cases',
  'memory manager': 'kubelet-memorymanager-cases',
  'device manager': 'kubelet-devicemanager-cases',
} as const;

describe('vectors', () => {
  it('every file has an adapter, and every case that runs passes', async function () {
    this.timeout(300_000);
    const outcomes = await runVectors(import.meta.dirname);
    assert.ok(outcomes.length > 0);
    for (const { file, ran, failures, skipped } of outcomes) {
      assert.deepEqual(failures, [], file);
      assert.ok(ran > 0, `${file}: nothing ran (${skipped.map(({ reason }) => reason).join('; ')})`);
    }
  });

  it('of the kubelet are counted by manager and version on the page of versions', async () => {
    const rows: string[] = [];
    for (const [manager, file] of Object.entries(MANAGERS)) {
      const text = readFileSync(join(import.meta.dirname, `${file}.json`), 'utf8');
      const content = JSON.parse(text) as UpstreamFile<UpstreamCase>;
      const versionOf = ({ since = content.upstream }: UpstreamCase) => since;
      for (const version of new Set(content.cases.map(versionOf))) {
        const cases = content.cases.filter((item) => versionOf(item) === version);
        const { ran, passed } = await runFile(import.meta.dirname, file, { ...content, cases });
        rows.push([manager, version, cases.length, passed, ran - passed, cases.length - ran].join(' | '));
      }
    }
    const page = readFileSync(PAGE, 'utf8');
    const [, section = ''] = page.split("### Upstream's unit tests");
    const cells = [...section.matchAll(/^\|( \w+ manager .*)\|$/gm)].map(([, row = '']) =>
      row.trim().replace(/ *\| */g, ' | '),
    );
    assert.deepEqual(cells.sort(), rows.sort());
  });
});
