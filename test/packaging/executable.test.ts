import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { createFixtureCluster } from '../cli/cluster-fixture.ts';
import { startConsole } from '../cli/console-process.ts';
import { buildOnce, dist, root } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';

const ELF_HEADER = 64;

describe('the single executable', function () {
  needs('linux');
  this.timeout(600_000);
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-one-'));
  const program = join(directory, 'plumbline');
  const temporary = join(directory, 'tmp');
  /** Without a PATH, Node.js is not found; HOME has no modules. */
  const run = (args: readonly string[], { command = program, tmp = temporary } = {}) =>
    spawnSync(command, args, { cwd: directory, env: { HOME: directory, TMPDIR: tmp }, encoding: 'utf8' });
  const build = (...args: readonly string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx', 'packaging/executable.ts', ...args], {
      cwd: root,
      encoding: 'utf8',
    });

  before(() => {
    mkdirSync(temporary);
    buildOnce();
    const { status, stderr } = build('--out', program);
    assert.equal(status, 0, stderr);
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  it('runs on its own: version, help, and with its names for kubectl', () => {
    assert.equal(run(['--version']).stdout, `${packageJson.version}\n`);
    const help = run(['explain', '--help']);
    assert.deepEqual([help.status, help.stderr], [0, '']);
    assert.match(help.stdout, /^Usage: plumbline explain/);
    for (const name of ['kubectl-plumbline', 'kubectl_complete-plumbline']) symlinkSync(program, join(directory, name));
    const plugin = run(['--help'], { command: join(directory, 'kubectl-plumbline') });
    assert.match(plugin.stdout, /^Usage: kubectl plumbline <command>/);
    const completion = run(['expl'], { command: join(directory, 'kubectl_complete-plumbline') });
    assert.match(completion.stdout, /^explain\t[\s\S]*^:4$/m);
  });

  it('makes system calls with its embedded native module, and leaves no file of it', () => {
    const { status, stderr } = run(['qemu', '--qmp', '/nonexistent/qmp', '--mask', '0']);
    assert.deepEqual(
      [status, stderr.split(',')[0]],
      [3, 'plumbline: /nonexistent/qmp: connect ENOENT /nonexistent/qmp\n'],
    );
    assert.deepEqual(readdirSync(temporary), []);
  });

  it('names the folder and TMPDIR if it cannot write, while commands without a native module work', () => {
    const { status, stderr } = run(['qemu', '--qmp', '/nonexistent/qmp', '--mask', '0'], { tmp: '/nonexistent/tmp' });
    assert.equal(status, 1);
    assert.match(
      stderr,
      /^plumbline: system calls need a folder for a native module, and \/nonexistent\/tmp does not do: .*TMPDIR/,
    );
    assert.equal(run(['completion', 'bash'], { tmp: '/nonexistent/tmp' }).status, 0);
  });

  it('serves its embedded web page', async () => {
    const cluster = await createFixtureCluster();
    try {
      const { url, end } = await startConsole(cluster.kubeconfig, [], [program]);
      for (const file of ['', 'console.js', 'console.css', 'icon.svg']) {
        const response = await fetch(`${url}${file}`);
        const bytes = Buffer.from(await response.arrayBuffer());
        const original = readFileSync(join(dist, 'console', file === '' ? 'index.html' : file));
        assert.ok(bytes.equals(original), file);
      }
      assert.equal(await end('SIGTERM'), 0);
    } finally {
      await cluster.stop();
    }
  });

  it('is identical when it is built again', () => {
    const again = join(directory, 'again');
    const { status, stderr } = build('--out', again);
    assert.equal(status, 0, stderr);
    assert.ok(readFileSync(program).equals(readFileSync(again)));
  });

  it('refuses the demo, which needs the npm package', () => {
    const { status, stderr } = run(['demo']);
    assert.equal(status, 2);
    assert.match(stderr, /^plumbline: this executable does not contain the daemons .*npm package/);
  });

  it('comes with the licences of its content', () => {
    const text = readFileSync(`${program}.licenses`, 'utf8');
    for (const part of ['Apache License', 'Node.js', 'koffi', 'commander']) assert.ok(text.includes(part), part);
  });

  it('refuses an unsuitable Node.js before it writes anything', () => {
    const of = (machine: number, text = '') => {
      const bytes = Buffer.alloc(ELF_HEADER);
      bytes.write('\x7fELF', 'latin1');
      bytes.writeUInt16LE(machine, 18);
      return Buffer.concat([bytes, Buffer.from(text)]);
    };
    const file = join(directory, 'node');
    const out = join(directory, 'none');
    const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
    const other = process.arch === 'x64' ? { machine: 183, arch: 'arm64' } : { machine: 62, arch: 'x64' };
    const same = process.arch === 'x64' ? 62 : 183;
    for (const [bytes, message] of [
      [Buffer.from('#!/bin/sh\n'), /is not an ELF file/],
      [of(8), /is for machine 8 of ELF/],
      [of(same), /cannot embed a program/],
      [of(same, `${fuse}:0 v0.0.1`), /is not Node\.js v/],
      [of(other.machine, `${fuse}:0 ${process.version}`), new RegExp(`koffi-linux-${other.arch}.*--koffi`)],
    ] as const) {
      writeFileSync(file, bytes);
      chmodSync(file, 0o755);
      const { status, stderr } = build('--out', out, '--node', file);
      assert.equal(status, 2, stderr);
      assert.match(stderr, message);
    }
    assert.ok(!readdirSync(directory).includes('none'));
  });
});
