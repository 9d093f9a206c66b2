import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { RULES } from '../imports/rules.ts';
import { root } from '../support/bundles.ts';

const PAGE = 'docs/maintainers/architecture.md';
const TEXT = readFileSync(join(root, PAGE), 'utf8');
const MAX_FILES = 12;

const sectionOf = (title: string) => TEXT.split(/^## /m).find((section) => section.startsWith(`${title}\n`)) ?? '';

/** The files of each path, in the order of the page. */
const PATHS = sectionOf('Four paths through the code')
  .split(/^### /m)
  .slice(1)
  .map((path) => ({
    title: path.split('\n')[0] ?? '',
    files: [...path.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = '']) => file),
  }));

/** Whether one of two files imports the other. */
function areConnected(a: string, b: string): boolean {
  const imports = (file: string, target: string) => {
    const path = posix.relative(dirname(file), target);
    return readFileSync(join(root, file), 'utf8').includes(` from '${path.startsWith('.') ? path : `./${path}`}'`);
  };
  return imports(a, b) || imports(b, a);
}

/** Files of a path that do not exist, or that neither import an earlier one nor are imported by it. */
function faultsOf(files: readonly string[]): string[] {
  const missing = files.filter((file) => !existsSync(join(root, file)));
  if (missing.length > 0) return missing;
  return files.filter((file, i) => i > 0 && !files.slice(0, i).some((earlier) => areConnected(file, earlier)));
}

/** The folders in the first column of a table. */
const foldersOf = (section: string) =>
  [...section.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([\w-]+)\/`/g)].map(([, folder]) => folder),
  );

describe(PAGE, () => {
  it('has four paths', () => assert.equal(PATHS.length, 4));

  for (const { title, files } of PATHS) {
    it(`${title}: the files exist and follow the imports`, () => {
      assert.ok(files.length > 4 && files.length <= MAX_FILES, `${files.length} files`);
      assert.deepEqual(faultsOf(files), []);
    });
  }

  for (const [title, folder] of [
    ['Layers of the node agent', 'node-agent'],
    ['Layers of the extender', 'scheduler-plugin'],
  ] as const) {
    it(`${title}: every folder, from the top`, () => {
      const floors = RULES.find((rule) => rule.folder === folder)?.floors ?? [];
      const ranks = foldersOf(sectionOf(title)).map((name = '') =>
        floors.findIndex((floor) => floor.split(' ').includes(name)),
      );
      const sorted = ranks.toSorted((a, b) => b - a);
      assert.deepEqual(ranks, sorted);
      const names = floors.flatMap((floor) => floor.split(' '));
      const existing = names.filter((name) => existsSync(join(root, folder, name)));
      assert.equal(ranks.length, existing.length - 1, 'all but the files directly in the folder');
    });
  }
});
