import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { cycles, faultsIn, forbidden } from './check.ts';
import { type Import, importsOf } from './graph.ts';
import { type ImportRule, RULES } from './rules.ts';

const one = (file: string, target: string): Import => ({ file, target, isPackage: false });

describe('the imports of this repository', () => {
  it('follow every rule', () => assert.deepEqual(faultsIn(root), []));

  it('have a rule for every top folder with code', () => {
    const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js', '*.cjs'], { cwd: root, encoding: 'utf8' });
    const folders = files.split('\n').filter((file) => file.includes('/'));
    const tops = new Set(folders.map((file) => file.slice(0, file.indexOf('/'))));
    const ruled = RULES.filter(({ folder, may }) => may !== undefined && !folder.includes('/'));
    assert.deepEqual([...tops].sort(), ruled.map(({ folder }) => folder).sort());
  });

  it('have floors of folders and files that exist', () => {
    const named = RULES.flatMap(({ folder, floors = [] }) =>
      floors.flatMap((floor) => floor.split(' ').map((name) => join(folder, name))),
    );
    assert.deepEqual(
      named.filter((path) => !existsSync(join(root, path)) && !existsSync(join(root, `${path}.ts`))),
      [],
    );
  });

  it('are documented in CONTRIBUTING.md in the same way', () => {
    const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
    const rows = [...text.matchAll(/^\| ((?:`[\w/-]+\/`,? *)+)\|[^|]*\| *([^|]*?) *\|$/gm)].flatMap(
      ([, names = '', may = '']) => [...names.matchAll(/`([\w/-]+)\/`/g)].map(([, folder]) => `${folder}: ${may}`),
    );
    const expected = RULES.filter(({ may }) => may !== undefined).map(({ folder, may }) => {
      if (may === '*') return `${folder}: everything`;
      return `${folder}: ${may === undefined || may.length === 0 ? 'nothing of ours' : may.join(', ')}`;
    });
    assert.deepEqual(rows.sort(), expected.sort());
  });
});

describe('allowed imports', () => {
  it('model/ is pure: it imports zod and no other package, of npm or of Node.js', () => {
    const packages = ['zod', 'node:fs', 'node:path', 'express', 'undici', 'pino'];
    const imports = packages.map((target) => ({ file: 'model/reservations/reservation.ts', target, isPackage: true }));
    assert.equal(forbidden(imports, RULES).length, packages.length - 1);
  });
});

describe('floors', () => {
  const rules: ImportRule[] = [
    { folder: 'daemon', may: [], floors: ['wire', 'filter score', '.'] },
    { folder: 'daemon/filter', floors: ['.', 'masks'] },
  ];

  for (const [file, target, allowed] of [
    ['daemon/main.ts', 'daemon/filter/b.ts', true],
    ['daemon/filter/a.ts', 'daemon/score/b.ts', false],
    ['daemon/new/a.ts', 'daemon/wire/b.ts', false],
    ['daemon/filter/masks/a.ts', 'daemon/filter/b.ts', true],
    ['daemon/filter/a.ts', 'daemon/filter/masks/b.ts', false],
  ] as const) {
    it(`${file} ${allowed ? 'may' : 'may not'} import ${target}`, () => {
      assert.equal(forbidden([one(file, target)], rules).length, allowed ? 0 : 1);
    });
  }
});

describe('folders that import each other in a circle', () => {
  it('are named with the imports that close the circle', () => {
    const imports = [one('cli/a/a.ts', 'cli/b/b.ts'), one('cli/b/b.ts', 'cli/a/a.ts'), one('cli/b/b.ts', 'cli/c/c.ts')];
    const closing = ['cli/a/a.ts imports cli/b/b.ts', 'cli/b/b.ts imports cli/a/a.ts'];
    assert.deepEqual(cycles(imports), [{ folders: ['cli/a', 'cli/b'], imports: closing }]);
    assert.deepEqual(cycles(imports.slice(1)), []);
  });
});

describe('the imports of a source file', () => {
  for (const [what, text, targets] of [
    ['several lines', "import {\n  a,\n  b,\n} from '../model/a.ts';", ['model/a.ts']],
    ['an export', "export * from './a.ts';", ['kube/a.ts']],
    ['no names', "import './a.ts';", ['kube/a.ts']],
    ['a call', "const a = await import('./a.ts');", ['kube/a.ts']],
    ['require', "const a = require('node:fs');", ['node:fs']],
    ['a part of a scoped package', "import { Code } from '@grpc/grpc-js/build/src/code';", ['@grpc/grpc-js']],
    ['a comment and a text', "// data from 'nowhere'\nconst text = `it comes from '../cli/main.ts'`;", []],
  ] as const) {
    it(`are read from ${what}`, () => {
      assert.deepEqual(
        importsOf('kube/thing.ts', text).map(({ target }) => target),
        targets,
      );
    });
  }
});
