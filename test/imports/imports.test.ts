import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { faultsIn } from './check.ts';
import { type ImportRule, RULES } from './rules.ts';

describe('the imports of this repository', () => {
  it('have a rule for every top folder with code', () => {
    const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js', '*.cjs'], { cwd: root, encoding: 'utf8' });
    const folders = files.split('\n').filter((file) => file.includes('/'));
    const tops = new Set(folders.map((file) => file.slice(0, file.indexOf('/'))));
    const ruled = RULES.filter(({ folder, may }) => may !== undefined && !folder.includes('/'));
    assert.deepEqual([...tops].sort(), ruled.map(({ folder }) => folder).sort());
  });

  for (const { folder, floors } of RULES) {
    if (floors === undefined) continue;
    it(`have a floor for every folder of ${folder}/`, () => {
      const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
      const code = files.filter((file) => file.includes('/') && /\.tsx?$/.test(file));
      const children = [...new Set(code.map((file) => file.slice(0, file.indexOf('/'))))];
      const named = floors.flatMap((floor) => floor.split(' ')).filter((name) => name !== '.');
      assert.deepEqual(children.sort(), named.sort());
    });
  }

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

const FOLDERS = ['model', 'daemon/wire', 'daemon/filter', 'page', 'page/x', 'test/lab'];

describe('the check of imports', () => {
  const createDirectory = tempDirectories();
  const rules: ImportRule[] = [
    { folder: 'model', may: [], packages: ['zod'] },
    { folder: 'daemon', may: ['model'], floors: ['wire', 'filter', '.'] },
    { folder: 'daemon/filter', may: [] },
    { folder: 'page', may: ['model'] },
    { folder: 'test', may: '*' },
  ];

  for (const [label, files, faults] of [
    ['imports that rules allow', { 'model/b.ts': ['zod'], 'daemon/main.ts': ['./filter/a.ts', '../model/a.ts'] }, []],
    ['a folder that is not allowed', { 'model/b.ts': ['../page/a.ts'] }, ['model/ may import nothing of ours']],
    [
      'the rule of an inner folder',
      { 'daemon/filter/b.ts': ['../../model/a.ts'] },
      ['daemon/filter/ may import nothing of ours'],
    ],
    ['a package that is not allowed', { 'model/b.ts': ['express'] }, ['model/ may import the packages zod only']],
    ['a floor above', { 'daemon/wire/b.ts': ['../filter/a.ts'] }, ['the floors of daemon/ are wire < filter < .']],
    [
      'a circle by value',
      { 'page/b.ts': ['./c.ts'], 'page/c.ts': ['./b.ts'] },
      ['circle of files', 'circle of files by value'],
    ],
    ['a circle by type', { 'page/b.ts': ['./c.ts'], 'page/c.ts': ['type ./b.ts'] }, ['circle of files']],
    ['a circle by type in the lab', { 'test/lab/b.ts': ['./c.ts'], 'test/lab/c.ts': ['type ./b.ts'] }, []],
    [
      'a circle of folders',
      { 'page/x/b.ts': ['../a.ts'], 'page/b.ts': ['type ./x/a.ts'] },
      ['circle of folders', 'circle of folders'],
    ],
  ] satisfies [string, Record<string, string[]>, string[]][]) {
    it(`${faults.length === 0 ? 'accepts' : 'refuses'} ${label}`, async () => {
      const tree = createDirectory();
      const sources = { ...Object.fromEntries(FOLDERS.map((name) => [`${name}/a.ts`, []])), ...files };
      const texts = Object.entries<string[]>(sources).map(([file, imports]) => [file, textOf(imports)]);
      writeTree(tree, Object.fromEntries(texts));
      const found = await faultsIn(tree, rules);
      assert.deepEqual(found.map((fault) => fault.replace(/^[^:]*: /, '')).sort(), faults);
    });
  }
});

/** `type ./a.ts`: an import of a type only. */
const textOf = (imports: readonly string[]) =>
  imports
    .map(
      (target) => `import ${target.startsWith('type ') ? 'type ' : ''}{ A } from '${target.replace('type ', '')}';\n`,
    )
    .join('');
