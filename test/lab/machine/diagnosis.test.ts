import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startProgram } from '../../real/processes.ts';
import { explaining } from './diagnosis.ts';
import { placesOf } from './places.ts';
import { createShell } from './ssh.ts';

describe('the diagnosis of the lab', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-diagnosis-'));
  after(() => rmSync(directory, { recursive: true }));
  const places = placesOf({ XDG_CACHE_HOME: directory });
  const serialLog = join(directory, 'serial.log');
  const printed = Array.from({ length: 100 }, (_, line) => `[  ${line}.0] line ${line} of the guest`);
  writeFileSync(serialLog, `${printed.join('\n')}\nKernel panic - not syncing\n`);

  it('for a guest that ssh does not reach: shows how QEMU ended, its output, and the guest’s last output', async () => {
    const script = 'echo "qemu: assertion failed" >&2; exit 3';
    const qemu = startProgram('qemu', '/bin/sh', ['-c', script], join(directory, 'qemu.log'));
    while (qemu.ended === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    const shell = explaining(createShell(places, await freePort()), { qemu, serialLog });
    await assert.rejects(shell.run('true'), ({ message }: Error) => {
      assert.match(message, /^ssh true ended with 255: [\s\S]*Connection refused/);
      assert.match(message, /\nQEMU ended with 3\n/);
      assert.match(message, /qemu\.log:\nqemu: assertion failed\n/);
      assert.match(message, /serial\.log:\n(.*\n)*\[ {2}99\.0\] line 99 of the guest\nKernel panic - not syncing$/);
      assert.ok(!message.includes('line 70 '), 'only the end');
      return true;
    });
  });

  it('for a guest that ends by a signal: shows the signal', async () => {
    const qemu = startProgram('qemu', '/bin/sleep', ['60'], join(directory, 'silent.log'));
    assert.equal(qemu.ended, undefined);
    await qemu.stop('SIGABRT');
    const shell = explaining(createShell(places, await freePort()), { qemu, serialLog });
    await assert.rejects(shell.run('true'), /\nQEMU ended with SIGABRT\n.*silent\.log is empty\n/);
  });

  it('is omitted for a failed command in a guest that answers', async () => {
    const failing = { arguments: [], run: () => Promise.reject(new Error('ssh false ended with 1: no')) };
    const qemu = { ended: undefined, logFile: join(directory, 'none.log') };
    await assert.rejects(explaining(failing, { qemu, serialLog }).run('false'), /^Error: ssh false ended with 1: no$/);
  });
});
