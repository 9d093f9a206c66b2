import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { AgentLogger } from '../../node-agent/telemetry/log-messages.ts';
import { boundedLine } from '../../runtime/log.ts';
import { printable } from '../../runtime/printable.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { HOSTILE, LONG, strangeIn } from '../attacks/hostile-texts-fixture.ts';
import { root } from '../support/bundles.ts';
import { recordingLogger } from '../support/logger.ts';

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
describe('a text for a terminal', () => {
  for (const [text, expected] of [
    ['plain text with ’ … ✔ ü 日本 😀', 'plain text with ’ … ✔ ü 日本 😀'],
    ['a\u001b[31mb', 'a\\x1b[31mb'],
    ['a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['\u009b\u007f\u0000', '\\x9b\\x7f\\x00'],
    ['\u2028\u202e\u2066\ufeff', '\\u2028\\u202e\\u2066\\ufeff'],
    ['\u{e0041}', '\\udb40\\udc41'],
    ['\ud800', '\\ud800'],
    ['x'.repeat(4100), `${'x'.repeat(4096)}… (4 more characters)`],
  ] as const) {
    it(JSON.stringify(text).slice(0, 60), () => assert.equal(printable(text), expected));
  }
});

describe('the log of a recurring problem', () => {
  it('has a line for its begin, for each change and for its end', () => {
    const { log, lines } = recordingLogger();
    const problems = new ProblemLog(log as AgentLogger);
    problems.recovered();
    problems.failed(new Error('away'), 'publishing the node topology failed; retrying');
    problems.failed('away', 'publishing the node topology failed; retrying');
    problems.failed(new Error('busy'), 'publishing the node topology failed; retrying');
    problems.recovered();
    problems.recovered();
    problems.failed('busy', 'renewing the agent’s Lease failed; retrying');
    assert.deepEqual(
      lines.map(({ level, msg, reason, warning, was, lastedSeconds }) =>
        level === 40 ? [level, msg, reason] : [level, msg, warning, was, lastedSeconds],
      ),
      [
        [40, 'publishing the node topology failed; retrying', 'away'],
        [40, 'publishing the node topology failed; retrying', 'busy'],
        [30, 'recovered', 'publishing the node topology failed; retrying', 'busy', 0],
        [40, 'renewing the agent’s Lease failed; retrying', 'busy'],
      ],
    );
  });

  it('shortens a problem to 500 characters', () => {
    const { log, lines } = recordingLogger();
    const problems = new ProblemLog(log as AgentLogger);
    problems.failed('x'.repeat(500), 'DPU is not ready');
    problems.failed(`${'y'.repeat(500)}z`, 'DPU is not ready');
    const texts = lines.map(({ reason }) => String(reason));
    assert.equal(texts[0], 'x'.repeat(500));
    assert.match(texts[1] ?? '', /^y{490,500}…$/);
  });
});
