import assert from 'node:assert/strict';
import { reflow } from '../../../cli/support/terminal.ts';

describe('a help text on a narrow terminal', () => {
  const HELP = [
    'A paragraph that is broken',
    'for a wider terminal.',
    '',
    'Examples:',
    '  plumbline explain vm firewall',
    '',
  ];

  it('has paragraphs of its width, and examples as they are', () => {
    assert.deepEqual(reflow(HELP, 20), [
      ...['A paragraph that is', 'broken for a wider', 'terminal.', ''],
      ...['Examples:', '  plumbline explain vm firewall', ''],
    ]);
  });

  it('stays as it is where it fits', () => assert.deepEqual(reflow(HELP, 80), HELP));
});
