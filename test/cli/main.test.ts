import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import packageJson from '../../package.json' with { type: 'json' };
import { buildCli, PROGRAM } from './run.ts';

describe('a Node.js that is too old', () => {
  before(() => buildCli());

  /** The command on this Node.js, which claims another version. */
  function on(version: string): Promise<{ status: number; stderr: string }> {
    const claim = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"${version}"})`;
    return new Promise((resolve) => {
      execFile(process.execPath, ['--import', claim, PROGRAM, 'version', '--client'], (error, _, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code), stderr });
      });
    });
  }
  const oldest = packageJson.engines.node.replace('>=', '');

  for (const [version, status] of [
    ['18.20.8', 2],
    ['20.18.3', 2],
    [oldest, 0],
    ['22.1.0', 0],
  ] as const) {
    it(`${version}: ${status === 0 ? 'runs' : 'one line that names the oldest one'}`, async () => {
      const ran = await on(version);
      assert.equal(ran.status, status, ran.stderr);
      if (status === 0) return assert.equal(ran.stderr, '');
      assert.equal(ran.stderr.trim().split('\n').length, 1);
      assert.ok(ran.stderr.startsWith(`plumbline: needs Node.js ${oldest} or newer; this is `), ran.stderr);
    });
  }
});
