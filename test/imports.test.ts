import assert from 'node:assert/strict';
import { join } from 'node:path';
import { folderCycles, folderGraph, sourcesIn } from './support/folder-graph.ts';

const root = join(import.meta.dirname, '..');

/** In these no folder imports from one that imports back, directly or through others. */
const WITHOUT_CYCLES = ['node-agent', 'scheduler-plugin'];
/** These are assembled in a folder `wiring`. */
const WIRED = ['node-agent', 'scheduler-plugin'];

describe('imports between the folders of a part', () => {
  for (const part of WITHOUT_CYCLES) {
    it(`${part}/: no folder imports from one that imports back`, () => {
      const graph = folderGraph(sourcesIn(join(root, part)));
      assert.ok(graph.size > 1, 'no folders were found');
      assert.deepEqual(folderCycles(graph), []);
    });
  }

  for (const part of WIRED) {
    it(`${part}/: main.ts alone imports from wiring/, and is all there is beside the folders`, () => {
      const sources = sourcesIn(join(root, part));
      assert.deepEqual(
        [...sources.keys()].filter((path) => !path.includes('/')),
        ['main.ts'],
      );
      const importers = [...folderGraph(sources)].filter(([, targets]) => targets.has('wiring'));
      assert.deepEqual(
        importers.map(([folder]) => folder),
        ['.'],
      );
    });
  }
});

describe('the look for cycles of folders', () => {
  const cyclesOf = (sources: Readonly<Record<string, string>>) =>
    folderCycles(folderGraph(new Map(Object.entries(sources))));

  it('names the folders of a cycle, and the imports that make it', () => {
    const sources = {
      'main.ts': "import { a } from './gate/a.ts';",
      'gate/a.ts': "import { b } from '../lease/b.ts';",
      'lease/b.ts': "import { c } from '../files/inner/c.ts';",
      'files/inner/c.ts': "import { a } from '../../gate/a.ts';",
      'files/d.ts': "import { c } from './inner/c.ts';",
    };
    assert.deepEqual(cyclesOf(sources), [
      'files/inner → gate → lease → files/inner: files/inner/c.ts imports gate/a.ts; gate/a.ts imports lease/b.ts; lease/b.ts imports files/inner/c.ts',
    ]);
  });

  it('takes the topmost files for a folder', () => {
    const sources = { 'config.ts': "export * from './gate/a.ts';", 'gate/a.ts': "import '../config.ts';" };
    assert.deepEqual(cyclesOf(sources), ['. → gate → .: config.ts imports gate/a.ts; gate/a.ts imports config.ts']);
  });

  const forms: Readonly<Record<string, string>> = {
    'of a type': "import type { A } from '../a/a.ts';",
    'over several lines': "import {\n  type A,\n  b,\n} from '../a/a.ts';",
    'for its effects': "import '../a/a.ts';",
    'exported again': "export { a } from '../a/a.ts';",
    'at run time': "const { a } = await import('../a/a.ts');",
    'within a type': "type A = import('../a/a.ts').A;",
  };
  for (const [form, text] of Object.entries(forms)) {
    it(`counts an import ${form}`, () => {
      assert.equal(cyclesOf({ 'a/a.ts': "import { b } from '../b/b.ts';", 'b/b.ts': text }).length, 1);
    });
  }

  it('finds nothing where folders import in one direction, or a part imports from another', () => {
    const sources = {
      'a/a.ts': "import { b } from '../b/b.ts';\nimport { own } from './own.ts';",
      'a/own.ts': "import { kube } from '../../kube/client.ts';",
      'b/b.ts': "import { a } from '../../kube/a/a.ts';\nimport { join } from 'node:path';",
    };
    assert.deepEqual(cyclesOf(sources), []);
  });
});
