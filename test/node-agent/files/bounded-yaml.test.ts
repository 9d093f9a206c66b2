import assert from 'node:assert/strict';
import { MAX_YAML_BYTES, parseBoundedYaml } from '../../../node-agent/files/bounded-yaml.ts';

const refused = (text: string, message: RegExp | string) =>
  assert.throws(
    () => parseBoundedYaml(text),
    (error: Error) => {
      if (typeof message === 'string') assert.equal(error.message, message);
      else assert.match(error.message, message);
      assert.ok(error.message.length < 300, `${error.message.length} characters`);
      return true;
    },
  );

describe('YAML from other programs', () => {
  it('may have maps, lists, scalars and anchors', () => {
    assert.deepEqual(parseBoundedYaml('a: 1\nb: [x, {c: true}]\nd: &e {f: 2}\ng: *e\n'), {
      a: 1,
      b: ['x', { c: true }],
      d: { f: 2 },
      g: { f: 2 },
    });
    assert.equal(parseBoundedYaml(''), null);
  });

  it('is read up to the character limit and refused beyond it', () => {
    const most = `a: ${'x'.repeat(MAX_YAML_BYTES - 3)}`;
    assert.equal(most.length, 65_536);
    assert.equal((parseBoundedYaml(most) as { a: string }).a.length, MAX_YAML_BYTES - 3);
    refused(`${most}x`, 'it has more than 65536 characters');
  });

  it('is refused for a duplicate key in any map, with its place', () => {
    refused('a: 1\nb: 2\na: 3\n', /^the key "a" appears twice at line 3, column 1$/);
    refused('x:\n  - {k: 1, k: 2}\n', /the key "k" appears twice at line 2, column 12$/);
    refused('1: a\n1: b\n', /the key "1" appears twice/);
  });

  it('is refused for a syntax error, with its place, in one line', () => {
    refused('a: [1\nb: 2\n', /at line \d+, column \d+$/);
    refused('a: "x\n', /^[^\n]+ at line \d+, column \d+$/);
    refused(`a: ${'}'.repeat(1000)}`, /^[^\n]+ at line 1, column 4$/);
  });

  it('may use an alias a hundred times, but not expand into billions of values', () => {
    const uses = (count: number) => `a: &x 1\nb: [${Array.from({ length: count }, () => '*x').join(', ')}]\n`;
    assert.equal((parseBoundedYaml(uses(90)) as { b: number[] }).b.length, 90);
    const laughs = ['a: &a [x, x, x]'];
    for (const [anchor, before] of ['ba', 'cb', 'dc', 'ed', 'fe'].map((pair) => [pair[0], pair[1]]))
      laughs.push(`${anchor}: &${anchor} [*${before}, *${before}, *${before}, *${before}]`);
    refused(laughs.join('\n'), /alias/i);
    refused('a: &a [*a]\n', /^the anchor "a" contains itself/);
  });

  const brackets = (open: string, close: string, depth: number) => `a: ${open.repeat(depth)}${close.repeat(depth)}`;
  it('may have 64 open brackets at once', () => {
    assert.ok(parseBoundedYaml(brackets('[', ']', 64)));
    refused(brackets('[', ']', 65), 'nested too deeply');
    const braces = (depth: number) => `a: ${'{b: '.repeat(depth)}1${'}'.repeat(depth)}`;
    assert.ok(parseBoundedYaml(braces(64)));
    refused(braces(65), 'nested too deeply');
  });

  it('may have any number of brackets that are closed or part of a text', () => {
    assert.equal((parseBoundedYaml(`a:\n${'- []\n'.repeat(200)}`) as { a: unknown[] }).a.length, 200);
    // Closing brackets in a text do not offset brackets that are opened later.
    assert.ok(parseBoundedYaml(`b: []\n${brackets('[', ']', 64)}`));
    refused(`a: "${']}'.repeat(100)}"\n${brackets('[', ']', 65).replace('a', 'b')}`, 'nested too deeply');
  });

  it('may have 128 columns before the first word of a line', () => {
    const dashes = (count: number) => `${'- '.repeat(count / 2)}x`;
    assert.ok(parseBoundedYaml(dashes(126)));
    refused(dashes(130), 'nested too deeply');
    const blanks = (count: number) => `a:\n${' '.repeat(count)}x`;
    assert.ok(parseBoundedYaml(blanks(128)));
    refused(blanks(129), 'nested too deeply');
    refused(`${'? '.repeat(65)}x`, 'nested too deeply');
  });
});
