import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { boundedLine } from '../../runtime/log.ts';
import { HOSTILE, LONG, strangeIn } from '../attacks/hostile-texts-fixture.ts';
import { root } from '../support/bundles.ts';

const LINE = { level: 'info', component: 'test', time: '2026-11-01T10:00:00Z' };
describe('a line of a daemon’s log', () => {
  const fields: readonly [string, object][] = [
    ['a message', { msg: HOSTILE }],
    ['a value', { node: HOSTILE, msg: 'x' }],
    ['a nested value', { err: { name: 'Error', message: HOSTILE, cause: { message: HOSTILE } }, msg: 'x' }],
    ['a key', { labels: { [HOSTILE]: 'x' }, msg: 'x' }],
  ];
  for (const [title, more] of fields) {
    it(`has no raw control character, and is the same JSON: ${title}`, () => {
      const line = boundedLine(`${JSON.stringify({ ...LINE, ...more })}\n`);
      assert.deepEqual(strangeIn(line), []);
      assert.deepEqual(JSON.parse(line), { ...LINE, ...more });
    });
  }

  const long: readonly [string, object][] = [
    ['a message', { msg: LONG }],
    ['values', { node: LONG, err: { message: LONG, cause: { message: LONG } }, msg: 'x' }],
    ['a list', { nodes: Array.from({ length: 100_000 }, (_, i) => `worker-${i}`), msg: 'x' }],
    ['a list of lists', { nodes: Array.from({ length: 1000 }, () => Array(1000).fill(LONG.slice(0, 50))), msg: 'x' }],
    ['an object', { labels: Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, 'v'])), msg: 'x' }],
    ['a key', { labels: { [LONG]: 'x' }, msg: 'x' }],
  ];
  for (const [title, more] of long) {
    it(`is short: ${title}`, () => {
      const line = boundedLine(`${JSON.stringify({ ...LINE, ...more })}\n`);
      assert.ok(line.length < 20_000, `${line.length} characters`);
      assert.deepEqual(strangeIn(line), []);
      const { level, component, time, msg } = JSON.parse(line) as Record<string, string>;
      assert.deepEqual({ level, component, time }, LINE);
      assert.ok(msg !== undefined && msg.length > 0);
    });
  }

  it('is written so by the logger, and by a daemon that does not start', () => {
    const program = `
      import { createLogger } from './runtime/log.ts';
      import { runMain } from './runtime/daemon.ts';
      const text = ${JSON.stringify(LONG)};
      createLogger('test').child({ node: text }).warn({ err: new Error(text, { cause: new Error(text) }) }, text);
      await runMain('test', 'test', () => Promise.reject(new Error(text)));`;
    const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
    const { stderr, status } = spawnSync(process.execPath, args, { cwd: join(root), encoding: 'utf8' });
    assert.equal(status, 1, stderr.slice(0, 1000));
    assert.equal(stderr.split('\n').length, 4, 'a log line, a line for people, its details');
    assert.deepEqual(strangeIn(stderr), []);
    assert.ok(stderr.length < 40_000, `${stderr.length} characters`);
  });
});
