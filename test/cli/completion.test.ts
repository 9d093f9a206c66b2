import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProgram } from '../../cli/program.ts';
import { tempDirectories } from '../support/files.ts';
import { useCluster } from './cluster-fixture.ts';
import { PROGRAM, plumbline } from './run.ts';

const { commands } = await createProgram('plumbline', () => false);

describe('completion', function () {
  this.timeout(300_000);
  const cluster = useCluster(async (made) => {
    await made.node('worker-1');
    await made.pod('firewall');
  });
  const temp = tempDirectories();
  let directory: string;
  before(() => {
    directory = temp();
    writeFileSync(join(directory, 'plumbline'), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`, {
      mode: 0o755,
    });
  });

  const words = async (...args: string[]): Promise<string[]> => {
    const { stdout, stderr } = await cluster.run('__complete', ...args);
    assert.equal(stderr, '');
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]!]));
  };

  /** What is typed, and the words that complete it. */
  const cases: readonly [typed: string, words: string][] = [
    ['e', 'explain'],
    ['explain ', 'vm vmi pod'],
    ['explain pod ', 'firewall'],
    ['explain pod -n elsewhere ', ''],
    ['explain pod/', 'pod/firewall'],
    ['explain vm -n kube-s', 'kube-system'],
    ['top --context ', 'plumbline-sandbox'],
    ['top --context none ', ''],
    ['explain pod firewall -o ', 'json yaml wide name'],
    ['explain pod firewall --out', '--output'],
    ['top ', 'worker-1'],
    ['doctor webhook ext', 'extender'],
    ['completion ', 'bash zsh fish'],
    ['nonsense ', commands.map((command) => command.name()).join(' ')],
  ];
  for (const [typed, expected] of cases) {
    it(`${typed}⇥`, async () => assert.equal((await words(...typed.split(' '))).join(' '), expected));
  }

  it('lists every command with its summary', async () => {
    const { stdout } = await plumbline(['__complete', '']);
    assert.equal(stdout, commands.map((command) => `${command.name()}\t${command.summary()}\n`).join(''));
  });

  it('offers no names and prints no error without a cluster', async () => {
    const { stdout, stderr, status } = await plumbline(['__complete', 'explain', 'pod', '']);
    assert.deepEqual([stdout, stderr, status], ['', '', 0]);
  });

  it('ends with a directive for kubectl', async () => {
    const link = join(directory, 'kubectl_complete-plumbline');
    symlinkSync(PROGRAM, link);
    const { stdout } = await plumbline(['expl'], { program: link });
    assert.match(stdout, /^explain\t.*\n:4\n$/);
  });

  it('works in bash', async () => {
    const { stdout: script } = await plumbline(['completion', 'bash']);
    const typed = `
      ${script}
      COMP_WORDS=(plumbline explain p) COMP_CWORD=2; _plumbline; echo "\${COMPREPLY[*]}"
      COMP_WORDS=(plumbline explain pod '') COMP_CWORD=3; _plumbline; echo "\${COMPREPLY[*]}"`;
    const env = { ...process.env, PATH: `${directory}:${process.env.PATH}`, KUBECONFIG: cluster.kubeconfig };
    // Asynchronously, because the cluster is in this process.
    const out = await new Promise<string>((resolve, reject) => {
      execFile('bash', ['--norc', '-c', typed], { env }, (error, stdout) => (error ? reject(error) : resolve(stdout)));
    });
    assert.equal(out, 'pod\nfirewall\n');
  });

  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    it(`prints a valid script for ${shell}`, async () => {
      const { stdout } = await plumbline(['completion', shell]);
      if (spawnSync(shell, ['-c', 'exit 0']).error) {
        // Without the shell, check at least that quotes and braces are balanced.
        assert.equal((stdout.match(/'/g) ?? []).length % 2, 0);
        assert.equal((stdout.match(/[{]/g) ?? []).length, (stdout.match(/[}]/g) ?? []).length);
        return;
      }
      execFileSync(shell, ['-n'], { input: stdout });
    });
  }
});
