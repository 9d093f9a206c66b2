import assert from 'node:assert/strict';
import { faultsIn, faultsOfPage, faultsOfSource } from '../style/check.ts';
import { faultsOfDocstrings } from '../style/docstrings.ts';
import { MAX_SENTENCE_WORDS, PATTERNS, WORDS } from '../style/words.ts';
import { root } from '../support/bundles.ts';

const texts = (faults: readonly { text: string }[]) => faults.map(({ text }) => text);

describe('the style check', () => {
  it('finds words in the prose of a page and names the line and the replacement', () => {
    const [fault] = faultsOfPage('page.md', '# Title\n\nThe agent is told the map.\n');
    assert.deepEqual(fault, { file: 'page.md', line: 3, text: 'told', use: 'reported, given, informed, configured' });
  });

  it('ignores code, link targets, comments and generated tables of a page', () => {
    const page = [
      '# Title',
      '`nobody` and [a link](beside.md)',
      '```sh\necho anew\n```',
      '<!-- somebody -->',
      '<!-- begin: npm run docs:metrics -->\n| told |\n<!-- end -->',
      '    plumbline anew',
    ].join('\n\n');
    assert.deepEqual(faultsOfPage('page.md', page), []);
  });

  for (const { example, use } of [...WORDS, ...PATTERNS]) {
    it(`finds "${example}"`, () => {
      const [fault] = faultsOfPage('page.md', `# T\n\nIn it ${example} here.\n`);
      assert.equal(fault?.use, use);
    });
  }

  it('finds a sentence that is too long in a paragraph, a list and a table, but not in code', () => {
    const long = `The agent ${'really '.repeat(MAX_SENTENCE_WORDS)}runs.`;
    for (const page of [long, `- ${long}`, `| a | ${long} |`]) {
      assert.match(texts(faultsOfPage('page.md', page)).join(), /^a sentence of/, page);
    }
    assert.deepEqual(faultsOfPage('page.md', `It runs \`${'word '.repeat(100)}\`. ${'Short. '.repeat(100)}`), []);
  });

  it('reads comments and strings of a source, but no identifiers', () => {
    const source = ['// nobody knows', "const told = 'anew';", 'const beside = `somebody foretold`;'].join('\n');
    assert.deepEqual(texts(faultsOfSource('x.ts', source)).toSorted(), ['anew', 'foretold', 'nobody', 'somebody']);
    assert.deepEqual(faultsOfSource('x.ts', "const name = 'webhook.beside-it';"), []);
    assert.deepEqual(texts(faultsOfSource('x.yaml', 'told: 1 # beside it\n')), ['beside']);
  });

  it('finds a thing that is named one in the product, but no parameter of a short callback', () => {
    const source = ['const one = list[0];', 'list.map((one) => {', '});', 'list.map((one) => one.name);'].join('\n');
    assert.deepEqual(
      faultsOfSource('cli/x.ts', source).map(({ line }) => line),
      [1, 2],
    );
    assert.deepEqual(faultsOfSource('test/x.ts', source), []);
  });

  it('finds no fault in this project', function () {
    this.timeout(120_000);
    assert.deepEqual(faultsIn(root), []);
  });
});

describe('the check of docstrings', () => {
  const found = (source: string) => texts(faultsOfDocstrings('model/a.ts', source));

  for (const [what, source, fault] of [
    ['a function without a docstring', 'export function f() {}', 'f has no docstring'],
    ['an asynchronous function without a docstring', 'export async function f() {}', 'f has no docstring'],
    ['a constant function without a docstring', 'export const f = () => 1;', 'f has no docstring'],
    ['a line comment instead of a docstring', '// Returns 1.\nexport function f() {}', 'f has no docstring'],
    ['a docstring of something else', '/** One. */\nexport const a = 1;\nexport function f() {}', 'f has no docstring'],
    ['a throw without @throws', '/** One. */\nexport function f(a: number) { if (a) throw new Error(); }', 'f throws'],
  ] as const) {
    it(`finds ${what}`, () => assert.deepEqual(found(source), [fault]));
  }

  for (const [what, source] of [
    ['a docstring', '/** One. */\nexport function f() {}'],
    ['@throws', '/** One. @throws Error if a */\nexport function f(a: number) { if (a) throw new Error(); }'],
    ['a throw in a returned function', '/** One. */\nexport const f = () => () => { throw new Error(); };'],
    ['a function that is not exported', 'function f() {}'],
    ['a constant that is not a function', 'export const a = 1;'],
  ] as const) {
    it(`accepts ${what}`, () => assert.deepEqual(found(source), []));
  }
});
