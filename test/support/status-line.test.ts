import assert from 'node:assert/strict';
import { createStatusLine } from './status-line.ts';

function capture(isTTY: boolean) {
  const written: string[] = [];
  return { written, out: { isTTY, columns: 20, write: (text: string) => written.push(text) } };
}

describe('the progress of a long run', () => {
  it('is one line on a terminal, no longer than its width', () => {
    const { written, out } = capture(true);
    const progress = createStatusLine(out);
    progress.status('1 of 3');
    progress.line('survived: a');
    progress.status('x'.repeat(30));
    progress.end();
    const clear = '\r\u001b[K';
    assert.deepEqual(written, [
      `${clear}1 of 3`,
      `${clear}survived: a\n`,
      `${clear}1 of 3`,
      `${clear}${'x'.repeat(19)}`,
      clear,
    ]);
  });

  it('is a plain line at intervals without a terminal', () => {
    const { written, out } = capture(false);
    const progress = createStatusLine(out, 2);
    for (const i of [1, 2, 3, 4]) progress.status(`${i} of 4`);
    progress.line('done');
    progress.end();
    assert.deepEqual(written, ['2 of 4\n', '4 of 4\n', 'done\n']);
  });
});
