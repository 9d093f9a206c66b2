import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { fixedSleeps, type LayoutFault, misnamedShared, misplacedTests, TIERS, unreachedFiles } from './check.ts';

const files = (faults: readonly LayoutFault[]) => faults.map(({ file }) => file);
const treeOf = (...paths: string[]) => new Map(paths.map((path) => [path, '']));

describe('where a test stands', () => {
  const product = ['model/host.ts', 'model/lease/repair.ts', 'test/lanes.ts'];

  for (const [label, test, isPlaced] of [
    ['a file', 'test/model/host.test.ts', true],
    ['a folder', 'test/model/lease.test.ts', true],
    ['a file or folder that does not exist', 'test/model/lease/diagnosis.test.ts', false],
    ['a file of another folder', 'test/model/repair.test.ts', false],
    ['a tier', 'test/attacks/stranger.test.ts', true],
    ['code of the tests', 'test/lanes.test.ts', true],
  ] as const) {
    it(`${isPlaced ? 'may' : 'may not'} be the path of ${label}`, () => {
      assert.deepEqual(files(misplacedTests(treeOf(...product, test))), isPlaced ? [] : [test]);
    });
  }
});

describe('the tiers', () => {
  it('exist, and are described in docs/maintainers/testing.md in the same way', () => {
    const page = readFileSync(join(root, 'docs/maintainers/testing.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `test\/([\w-]+)` \| (.*) \|$/gm)].map(([, name, what]) => [name, what]);
    assert.deepEqual(rows, Object.entries(TIERS));
    assert.deepEqual(
      Object.keys(TIERS).filter((name) => !existsSync(join(root, 'test', name))),
      [],
    );
  });
});

describe('files that tests share', () => {
  for (const [file, isNamed] of [
    ['test/kube/fixture.ts', true],
    ['test/kube/kubelet-stand-in.ts', true],
    ['test/support/anything.ts', true],
    ['test/soak/sample.ts', true],
    ['test/tally.ts', true],
    ['test/kube/helpers.ts', false],
    ['test/kube/stand-in.ts', false],
  ] as const) {
    it(`${file} ${isNamed ? 'has' : 'does not have'} one of the four names`, () => {
      const tree = treeOf('test/run.ts', 'test/soak/run.ts', 'test/soak/soak.test.ts', file);
      assert.deepEqual(files(misnamedShared(tree)), isNamed ? [] : [file]);
    });
  }
});

describe('the test of a file', () => {
  const CODE = 'export const twice = (n: number) => 2 * n;';
  const MAIN = "import './cluster/pods.ts';\nrun(() => {});";

  for (const [label, tests, isReached] of [
    ['at its own path', [['test/model/cpus/count.test.ts', "import '../../../model/cpus/count.ts';"]], true],
    ['at the path of its folder', [['test/model/cpus.test.ts', "import '../../model/cpus/count.ts';"]], true],
    [
      'through another file',
      [
        ['test/model/cpus.test.ts', "import './fixture.ts';"],
        ['test/model/fixture.ts', "import '../../model/cpus/count.ts';"],
      ],
      true,
    ],
    ['in a process', [['test/model/cpus.test.ts', "spawn('node', [join(root, 'model/cpus/count.ts')]);"]], true],
    ['at another path', [['test/model/host.test.ts', "import '../../model/cpus/count.ts';"]], false],
    ['at the path of a top folder', [['test/model.test.ts', "import '../model/cpus/count.ts';"]], false],
  ] as const) {
    it(`${isReached ? 'reaches' : 'does not reach'} it ${label}`, () => {
      const tree = new Map<string, string>([['model/cpus/count.ts', CODE], ...tests]);
      assert.deepEqual(files(unreachedFiles(tree)), isReached ? [] : ['model/cpus/count.ts']);
    });
  }

  it('may start a bundle, whose imports it reaches, but not those of an inner folder', () => {
    const start = "spawn('node', [join(dist, 'webhook.cjs')]);";
    const program = [
      ['webhook/main.ts', MAIN],
      ['webhook/cluster/pods.ts', CODE],
      ['test/webhook.test.ts', start],
    ] as const;
    assert.deepEqual(files(unreachedFiles(new Map(program))), ['webhook/cluster/pods.ts']);
    assert.deepEqual(unreachedFiles(new Map([...program, ['test/webhook/cluster.test.ts', start]])), []);
  });

  it('is not needed for types and data', () => {
    assert.deepEqual(
      unreachedFiles(new Map([['model/shapes.ts', 'export interface Shape {}\nexport const A = 1;']])),
      [],
    );
  });
});

describe('a fixed sleep', () => {
  for (const [file, line, isFault] of [
    ['test/kube/a.test.ts', 'await sleep(0.3);', true],
    ['test/kube/a.test.ts', 'await new Promise((resolve) => setTimeout(resolve, 300));', true],
    ['test/kube/a.test.ts', 'while (!done) await delay(10);', false],
    ['test/faults/a.test.ts', 'await sleep(5);', false],
  ] as const) {
    it(`${isFault ? 'is not' : 'is'} allowed in ${file}: ${line.trim()}`, () => {
      assert.equal(fixedSleeps(new Map([[file, line]])).length, isFault ? 1 : 0);
    });
  }
});
