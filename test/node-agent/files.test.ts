import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock } from 'node:test';
import * as z from 'zod';
import { FileLimitError, parseSaved, readBounded, readHead, saveFile } from '../../node-agent/files/bounded-file.ts';
import { MAX_YAML_BYTES, parseBoundedYaml } from '../../node-agent/files/bounded-yaml.ts';
import { watchDirectory } from '../../node-agent/files/watch-directory.ts';
import { startVirtualTime } from '../support/virtual-time.ts';
import { eventually, recordingLogger, replaceFile, tempDirectories } from './support.ts';

describe('files from other programs', () => {
  const temp = tempDirectories();
  let path: string;
  beforeEach(() => {
    path = join(temp(), 'file');
  });

  it('are read whole up to the limit', () => {
    for (const size of [0, 1, 4095, 4096, 4097, 100_000]) {
      writeFileSync(path, 'ä'.repeat(size));
      assert.equal(readBounded(path, size * 2), 'ä'.repeat(size));
      if (size > 0) assert.throws(() => readBounded(path, size * 2 - 1), FileLimitError);
    }
  });

  it('are not read at all if too large, even if sparse', () => {
    execFileSync('truncate', ['-s', '64G', path]);
    const before = process.memoryUsage().rss;
    assert.throws(() => readBounded(path, 1024), { message: `${path}: larger than 1024 bytes` });
    assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
  });

  it('are read from the kernel, which reports no size', () => {
    assert.equal(readBounded('/proc/self/comm', 64), readFileSync('/proc/self/comm', 'utf8'));
    assert.equal(readBounded('/proc/cpuinfo', 2 ** 20), readFileSync('/proc/cpuinfo', 'utf8'));
    assert.throws(() => readBounded('/proc/self/smaps', 100), FileLimitError);
  });

  it('are refused without blocking if they are a pipe, a device, a directory or missing', () => {
    execFileSync('mkfifo', [path]);
    symlinkSync('/dev/zero', `${path}.zero`);
    mkdirSync(`${path}.d`);
    for (const suffix of ['', '.zero', '.d'])
      assert.throws(() => readBounded(path + suffix, 1024), /not a regular file/);
    assert.throws(() => readBounded(`${path}.missing`, 1024), { code: 'ENOENT' });
  });

  it('give their head up to a limit', () => {
    writeFileSync(path, '0123456789');
    assert.deepEqual([readHead(path, 4), readHead(path, 11)], ['0123', '0123456789']);
  });
});

describe('a file of the agent', () => {
  const temp = tempDirectories();

  it('is written below directories that do not exist, for its owner alone, and replaced in one step', () => {
    const directory = join(temp(), 'a/b');
    const path = join(directory, 'state.json');
    saveFile(path, 'old');
    const { ino } = statSync(path);
    saveFile(path, 'new');
    const after = statSync(path);
    assert.deepEqual([readFileSync(path, 'utf8'), after.mode & 0o777], ['new', 0o600]);
    assert.notEqual(after.ino, ino, 'another file took its place');
    assert.deepEqual(readdirSync(directory), ['state.json']);
    const umask = process.umask(0o077);
    saveFile(path, 'x', { mode: 0o755 });
    process.umask(umask);
    assert.equal(statSync(path).mode & 0o777, 0o755, 'with any umask');
  });

  it('leaves nothing behind if it cannot be written', () => {
    const directory = temp();
    mkdirSync(join(directory, 'state.json'));
    assert.throws(() => saveFile(join(directory, 'state.json'), 'x'), /EISDIR|EEXIST|ENOTEMPTY/);
    assert.deepEqual(readdirSync(directory), ['state.json']);
  });

  it('is read in format 1, which is the default, with unknown fields', () => {
    const schema = z.object({ a: z.number() });
    for (const text of ['{"a":1}', '{"a":1,"format":1,"more":true}'])
      assert.deepEqual(parseSaved(text, schema), { a: 1 });
    const later = { name: 'SavedFormatError', message: /has format 2, this agent reads format 1/ };
    assert.throws(() => parseSaved('{"a":1,"format":2}', schema), later);
    for (const text of ['{', '{"format":1}', '7']) assert.throws(() => parseSaved(text, schema), text);
  });
});

function refused(text: string, message: RegExp): void {
  assert.throws(() => parseBoundedYaml(text), { message });
  assert.throws(() => parseBoundedYaml(text), { message: /^.{1,299}$/ }, 'a short message of one line');
}

describe('YAML from other programs', () => {
  it('may have maps, lists, scalars and anchors', () => {
    const value = { a: 1, b: ['x', { c: true }], d: { f: 2 }, g: { f: 2 } };
    assert.deepEqual(parseBoundedYaml('a: 1\nb: [x, {c: true}]\nd: &e {f: 2}\ng: *e\n'), value);
    assert.equal(parseBoundedYaml(''), null);
  });

  it('is read up to the character limit and refused beyond it', () => {
    const most = `a: ${'x'.repeat(MAX_YAML_BYTES - 3)}`;
    assert.equal(most.length, 65_536);
    assert.equal((parseBoundedYaml(most) as { a: string }).a.length, MAX_YAML_BYTES - 3);
    refused(`${most}x`, /^it has more than 65536 characters$/);
  });

  it('is refused for a duplicate key in any map, with its place', () => {
    refused('a: 1\nb: 2\na: 3\n', /^the key "a" appears twice at line 3, column 1$/);
    refused('x:\n  - {k: 1, k: 2}\n', /the key "k" appears twice at line 2, column 12$/);
    refused('1: a\n1: b\n', /the key "1" appears twice/);
  });

  it('is refused for a syntax error, with its place, in one line', () => {
    refused('a: [1\nb: 2\n', /at line \d+, column \d+$/);
    refused('a: "x\n', /^[^\n]+ at line \d+, column \d+$/);
    refused(`a: ${'}'.repeat(1000)}`, /^[^\n]+ at line 1, column 4$/);
  });

  it('may use an alias a hundred times, but not expand into billions of values', () => {
    const uses = (count: number) => `a: &x 1\nb: [${Array.from({ length: count }, () => '*x').join(', ')}]\n`;
    assert.equal((parseBoundedYaml(uses(90)) as { b: number[] }).b.length, 90);
    const laughs = ['a: &a [x, x, x]'];
    for (const [anchor, before] of ['ba', 'cb', 'dc', 'ed', 'fe'].map((pair) => [pair[0], pair[1]]))
      laughs.push(`${anchor}: &${anchor} [*${before}, *${before}, *${before}, *${before}]`);
    refused(laughs.join('\n'), /alias/i);
    refused('a: &a [*a]\n', /^the anchor "a" contains itself/);
  });

  const brackets = (open: string, close: string, depth: number) => `a: ${open.repeat(depth)}${close.repeat(depth)}`;
  it('may have 64 open brackets at once', () => {
    assert.ok(parseBoundedYaml(brackets('[', ']', 64)));
    refused(brackets('[', ']', 65), /^nested too deeply$/);
    const braces = (depth: number) => `a: ${'{b: '.repeat(depth)}1${'}'.repeat(depth)}`;
    assert.ok(parseBoundedYaml(braces(64)));
    refused(braces(65), /^nested too deeply$/);
  });

  it('may have any number of brackets that are closed or part of a text', () => {
    assert.equal((parseBoundedYaml(`a:\n${'- []\n'.repeat(200)}`) as { a: unknown[] }).a.length, 200);
    // Closing brackets in a text do not offset brackets that are opened later.
    assert.ok(parseBoundedYaml(`b: []\n${brackets('[', ']', 64)}`));
    refused(`a: "${']}'.repeat(100)}"\n${brackets('[', ']', 65).replace('a', 'b')}`, /^nested too deeply$/);
  });

  it('may have 128 columns before the first word of a line', () => {
    const dashes = (count: number) => `${'- '.repeat(count / 2)}x`;
    assert.ok(parseBoundedYaml(dashes(126)));
    refused(dashes(130), /^nested too deeply$/);
    const blanks = (count: number) => `a:\n${' '.repeat(count)}x`;
    assert.ok(parseBoundedYaml(blanks(128)));
    refused(blanks(129), /^nested too deeply$/);
    refused(`${'? '.repeat(65)}x`, /^nested too deeply$/);
  });
});

describe('watching a directory', () => {
  const temp = tempDirectories();
  let seen: (string | undefined)[];
  let stop: AbortController;
  beforeEach(() => {
    seen = [];
    stop = new AbortController();
  });
  afterEach(() => stop.abort());
  const watch = (path: string, { log } = recordingLogger()) => {
    const names = seen;
    watchDirectory({ path, signal: stop.signal, onChange: (name) => names.push(name), log });
  };
  const sees = async (name: string | undefined, change: () => void) => {
    seen.length = 0;
    change();
    await eventually(() => seen.includes(name), `a change of ${name} after ${change}; seen ${seen}`);
  };

  it('reports at once that a missing one was created: no check comes, since no timer expires', async () => {
    const time = startVirtualTime();
    try {
      const path = join(temp(), 'late');
      watch(path);
      assert.deepEqual(seen, []);
      mkdirSync(path);
      for (let i = 0; i < 500 && seen.length === 0; i++) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(seen, [undefined]);
    } finally {
      time.end();
    }
  });

  it('reports a file that is created, filled, emptied, replaced repeatedly and removed', async () => {
    const path = temp();
    const file = join(path, 'f');
    watch(path);
    assert.deepEqual(seen, [undefined], 'at the start, anything may have changed');
    for (const text of ['', '1', '']) await sees('f', () => writeFileSync(file, text));
    for (let i = 0; i < 3; i++) await sees('f', () => replaceFile(file, String(i)));
    await sees('f', () => rmSync(file));
  });

  it('reports a directory that is created later, removed, and created again', async () => {
    const path = join(temp(), 'later');
    watch(path);
    assert.deepEqual(seen, []);
    await sees(undefined, () => mkdirSync(path));
    await sees('f', () => writeFileSync(join(path, 'f'), '1'));
    await sees(undefined, () => rmSync(path, { recursive: true }));
    await sees(undefined, () => mkdirSync(path));
    await sees('g', () => writeFileSync(join(path, 'g'), '1'));
  });

  it('reports a directory that is replaced by another', async () => {
    const path = join(temp(), 'd');
    mkdirSync(path);
    mkdirSync(`${path}2`);
    watch(path);
    await sees(undefined, () => {
      renameSync(path, `${path}1`);
      renameSync(`${path}2`, path);
    });
    const isWatched = () => {
      writeFileSync(join(path, 'f'), String(Math.random()));
      return seen.includes('f');
    };
    await eventually(isWatched, 'the new one is watched', 8);
  });

  it('reports that anything may have changed again and again while the directory cannot be watched, and says why', async () => {
    const path = temp();
    const logged = recordingLogger();
    const failing = mock.method(fs, 'watch', () => {
      throw Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), { code: 'ENOSPC' });
    });
    syncBuiltinESMExports();
    try {
      watch(path, logged);
      await eventually(() => seen.length > 2, 'it is read again');
      assert.match(String(logged.lines[0]?.['reason']), /ENOSPC/);
    } finally {
      failing.mock.restore();
      syncBuiltinESMExports();
    }
    await eventually(() => logged.said('recovered'), 'it is watched');
    await sees('f', () => writeFileSync(join(path, 'f'), '1'));
  });

  it('reports nothing after the signal', async () => {
    const path = temp();
    const ended = seen;
    watch(path);
    stop.abort();
    seen = [];
    stop = new AbortController();
    watch(path);
    ended.length = 0;
    await sees('f', () => writeFileSync(join(path, 'f'), '1'));
    assert.deepEqual(ended, [], 'only the other watch reports it');
  });
});
