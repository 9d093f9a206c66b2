import assert from 'node:assert/strict';
import { createProgress } from '../../../cli/support/output.ts';

/** Updates at the given milliseconds of the test's clock. */
function drawn(isTTY: boolean, times: readonly number[]): string[] {
  const written: string[] = [];
  const out = { isTTY, columns: 60, write: (text: string) => written.push(text) > 0 };
  let clock = 0;
  const progress = createProgress(out as never, () => clock / 1000);
  for (const time of times) {
    clock = time;
    progress.update(time / 40_000, `${time / 1000} VMs placed`);
  }
  progress.end();
  return written;
}

describe('the progress of a command', () => {
  it('is a bar on a terminal, redrawn and finally removed', () => {
    const written = drawn(true, [0, 10, 20_000]);
    assert.equal(written.length, 3);
    assert.equal(written[1], `\r\u001b[K${'█'.repeat(15)}${'░'.repeat(15)} 20 VMs placed`);
    assert.equal(written[2], '\r\u001b[K');
  });

  it('is a plain line at intervals in a pipe, without control characters', () => {
    const written = drawn(false, [0, 5000, 10_000, 12_000, 21_000, 40_000]);
    assert.deepEqual(written, [' 25 %  10 VMs placed\n', ' 52 %  21 VMs placed\n', '100 %  40 VMs placed\n']);
  });

  it('is silent in a pipe if the command ends soon', () => {
    assert.deepEqual(drawn(false, [0, 50, 9000]), []);
  });
});
