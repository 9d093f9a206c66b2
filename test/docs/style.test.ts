import assert from 'node:assert/strict';
import { faultsOfCheckout, faultsOfPage } from '../style/check.ts';
import { MAX_SENTENCE_WORDS, PATTERNS, WORDS } from '../style/words.ts';

const texts = (faults: readonly { text: string }[]) => faults.map(({ text }) => text);

describe('the style check', () => {
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

  it('finds no fault in this project', function () {
    this.timeout(120_000);
    assert.deepEqual(faultsOfCheckout(), []);
  });
});
