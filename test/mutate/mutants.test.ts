import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { root } from '../support/bundles.ts';
import { mutated, nameOf, type Placed, placedMutants, shuffled } from './mutants.ts';
import { switched } from './switches.ts';

const changesOf = (text: string, file = 'a.ts') =>
  placedMutants(file, text).map((one) => `${one.operator}: ${mutated(text, one)}`);

/** A source, and the expected mutants. */
const TYPESCRIPT: readonly [string, readonly string[]][] = [
  ['f = a < b;', ['< to <=: f = ((a) <= (b));']],
  ['f = a && b;', ['&& to ||: f = ((a) || (b));']],
  ['f = a ?? b;', ['?? b left out: f = (a);']],
  ['f = a[i] ?? b;', ['?? to &&: f = ((a[i]) && (b));']],
  ['f += b;', ['+= to -=: (f -= (b));']],
  ['f = a + `b`;', []],
  ['f = !a;', ['! left out: f = (a);']],
  ['f = a ? b : c;', ['condition to true: f = true ? b : c;', 'condition to false: f = false ? b : c;']],
  [
    'if (a) b();',
    ['condition to true: if (true) b();', 'condition to false: if (false) b();', 'call left out: if (a) ;'],
  ],
  ['await a();', ['call left out: ;']],
  ['f = a.filter(g).b;', ['filter left out: f = (a).b;']],
  ['f = a.some(g);', ['some to every: f = (a.every(g));']],
  ['const f = () => { return false; };', ['the other boolean: const f = () => { return true; };']],
  ['const f = () => { return a; };', ['return undefined: const f = () => { return undefined; };']],
  ['const f = true as const;', ['the other boolean: const f = false as const;']],
  // Code that does not run or decides nothing.
  ["import { a } from './b.ts'; type F = 1 | true;", []],
  ["log.warn({ a: b < 1 }, 'c'); deps.log.info(!a);", []],
  ['class A { #log; f(a) { this.#log.info(!a); } }', []],
  ['f = a.toString(1 < b);', ['number plus 1: f = a.toString((1 + 1) < b);', '< to <=: f = a.toString(((1) <= (b)));']],
  ['f({ buckets: [0.1, 1], a: 1 });', ['call left out: ;', 'number plus 1: f({ buckets: [0.1, 1], a: (1 + 1) });']],
  ['const MOST = 500; const LONG = 60 * 5;', ['* to /: const MOST = 500; const LONG = ((60) / (5));']],
  ['const NEAR = 0.8;', ['number plus 1: const NEAR = (0.8 + 1);']],
  ['const most = 500;', ['number plus 1: const most = (500 + 1);']],
];

const C: readonly [string, readonly string[]][] = [
  ['f = a < b;', ['< to <=: f = a <= b;']],
  ['f = *a & -b;', ['& to |: f = *a | -b;']],
  ['f = &a; return -b; g = a->b; h++;', []],
  [
    'if (!a) b();',
    [
      'condition to 1: if (1) b();',
      'condition to 0: if (0) b();',
      '! left out: if (a) b();',
      'call left out: if (!a) ;',
    ],
  ],
  ['while (a(b[i])) c;', ['condition to 0: while (0) c;']],
  [
    'f = a(1) + 0xC2 + 80;',
    [
      'number plus 1: f = a((1 + 1)) + 0xC2 + 80;',
      '+ to -: f = a(1) - 0xC2 + 80;',
      'number plus 1: f = a(1) + (0xC2 + 1) + 80;',
      '+ to -: f = a(1) + 0xC2 - 80;',
    ],
  ],
  ['#define A (1 < 2)\n/* a < b */ "c < d"; \'<\'; // e < f\n', []],
];

describe('changes to a source', () => {
  for (const [text, expected] of TYPESCRIPT) {
    it(`TypeScript: ${text}`, () => assert.deepEqual(changesOf(text).sort(), [...expected].sort()));
  }

  for (const [text, expected] of C) {
    it(`C: ${text.trim()}`, () => assert.deepEqual(changesOf(text, 'a.c').sort(), [...expected].sort()));
  }

  it('name their line and their index among equal ones', () => {
    const found = placedMutants('a.ts', 'f();\n  g = 1 + 1;\n');
    assert.deepEqual(
      found.map(({ line, code, was, nth }) => [line, code, was, nth]),
      [
        [1, 'f();', 'f();', 0],
        [2, 'g = 1 + 1;', '1', 0],
        [2, 'g = 1 + 1;', '1 + 1', 0],
        [2, 'g = 1 + 1;', '1', 1],
      ],
    );
  });

  it('keep their place in a sample while the rest of the file changes', () => {
    const text = Array.from({ length: 200 }, (_, i) => `f${i} = a${i} < b;`).join('\n');
    const drawn = (source: string) => shuffled(placedMutants('a.ts', source), 7).slice(0, 50).map(nameOf);
    const before = drawn(text);
    assert.deepEqual(
      drawn(`g = a && b;\n${text}`)
        .filter((name) => !name.includes('g ='))
        .slice(0, 49),
      before.slice(0, 49),
    );
    assert.notDeepEqual(shuffled(placedMutants('a.ts', text), 8).slice(0, 50).map(nameOf), before);
  });
});

const SOURCES = ['model', 'webhook', 'scheduler-plugin', 'node-agent', 'kube', 'native', 'hardware', 'runtime'].flatMap(
  (folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('gen/'))
      .map((name) => join(folder, name)),
);

describe('changes to this project', () => {
  const read = (file: string) => readFileSync(join(root, file), 'utf8');

  it('are valid programs, because any test would notice an invalid one', () => {
    const every = SOURCES.flatMap((file) => placedMutants(file, read(file)));
    assert.ok(every.length > 5000, `${every.length}`);
    for (const one of shuffled(every, Date.now()).slice(0, 300)) {
      assert.doesNotThrow(() => transformSync(mutated(read(one.file), one), { loader: 'ts' }), nameOf(one));
    }
  });

  it('can all be behind switches at once', () => {
    for (const file of SOURCES) {
      const numbered = placedMutants(file, read(file)).map((one, id) => ({ ...one, id }));
      assert.doesNotThrow(() => transformSync(switched(read(file), numbered), { loader: 'ts' }), file);
    }
  });
});

describe('switches', () => {
  const text = `
    export function run(list: readonly number[], more?: { a?: number }): unknown[] {
      const seen: unknown[] = [];
      const push = (...all: unknown[]) => { seen.push(...all); return all.length as number; };
      for (let i = 0; i < list.length; i += 1) {
        if (list[i]! > 2 && !(list[i] === 5)) push(i ? 'x' : 'first', list.filter((one) => one % 2 === 0).length);
        else push(more?.a ?? -1);
      }
      push(list.some((one) => one > 3), Math.max(...list, 0), true);
      return seen;
    }`;
  const load = (source: string) => {
    const module = { exports: {} as { run(list: readonly number[], more?: object): unknown } };
    new Function('module', 'exports', transformSync(source, { loader: 'ts', format: 'cjs' }).code)(
      module,
      module.exports,
    );
    return module.exports.run;
  };
  const numbered: (Placed & { id: number })[] = placedMutants('a.ts', text).map((one, id) => ({ ...one, id }));
  const before = globalThis.plumblineMutant;
  afterEach(() => {
    globalThis.plumblineMutant = before;
  });

  it('do not change the behaviour of a program', () => {
    globalThis.plumblineMutant = undefined;
    const [plain, withSwitches] = [load(text), load(switched(text, numbered))];
    for (const list of [[], [1], [3, 4, 5], [5, 5, 0, 9]]) {
      for (const more of [undefined, {}, { a: 0 }]) assert.deepEqual(withSwitches(list, more), plain(list, more));
    }
  });

  it('activate one change each, with the effect of the changed text', () => {
    let active = -1;
    globalThis.plumblineMutant = (id) => id === active;
    const run = load(switched(text, numbered));
    // Changes that cause an endless loop are left out.
    for (const one of numbered.filter(({ was }) => !was.startsWith('i ') && was !== '1')) {
      active = one.id;
      assert.deepEqual(run([3, 4, 5, 0], { a: 3 }), load(mutated(text, one))([3, 4, 5, 0], { a: 3 }), nameOf(one));
    }
  });

  it('are called when the program reaches them', () => {
    const reached = new Set<number>();
    globalThis.plumblineMutant = (id) => {
      reached.add(id);
      return false;
    };
    const run = load(switched(text, numbered));
    assert.equal(reached.size, 0);
    run([]);
    const was = (ids: Iterable<number>) => [...ids].map((id) => numbered[id]!.was);
    assert.ok(was(reached).includes('i < list.length'));
    assert.ok(!was(reached).some((one) => one.startsWith('list[i]')));
    run([3, 4, 5, 0], {});
    assert.deepEqual(
      was(numbered.keys()).filter((_, id) => !reached.has(id)),
      [],
    );
  });
});
