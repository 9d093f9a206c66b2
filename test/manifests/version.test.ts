import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../support/bundles.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

describe('the version', () => {
  it('is the same in package.json, the lock file, the chart and the changelog', () => {
    const lock = JSON.parse(read('package-lock.json')) as { version: string };
    const chart = parse(read('manifests/chart/plumbline/Chart.yaml')) as Record<string, string>;
    const newest = /^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1];
    assert.deepEqual([lock.version, chart['version'], chart['appVersion'], newest], Array(4).fill(version));
  });
});
