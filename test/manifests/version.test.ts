import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
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

  it('is the tag of every image in the manifests', () => {
    const files = readdirSync(join(root, 'manifests'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.yaml') && !path.startsWith('chart/'))
      .map((path) => [path, read(`manifests/${path}`)] as const);
    const tagged = files.flatMap(([path, text]) =>
      [...text.matchAll(/(?:name: |image: )plumbline-[a-z-]+(?:\n\s+newTag: |:)(\S+)/g)].map(([, tag]) => [path, tag]),
    );
    assert.ok(tagged.length >= 6, JSON.stringify(tagged));
    for (const [path, tag] of tagged) assert.equal(tag, version, path);
  });
});
