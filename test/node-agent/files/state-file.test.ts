import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { parseSaved } from '../../../node-agent/files/bounded-file.ts';
import { StateFile } from '../../../node-agent/files/state-file.ts';
import { skipFor } from '../../support/parts.ts';
import { startVirtualTime, type VirtualTime } from '../../support/virtual-time.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

const MAX_BYTES = 200_000;
const schema = z.object({ value: z.string(), boot: z.number().default(1) });
const saved = (value: string) => JSON.stringify({ value });

describe('a state file', () => {
  const temp = tempDirectories();
  let path: string;
  let time: VirtualTime;
  let logger: ReturnType<typeof recordingLogger>;
  let stop: AbortController;
  beforeEach(() => {
    path = join(temp(), 'state', 'value.json');
    mkdirSync(dirname(path));
    time = startVirtualTime();
    logger = recordingLogger();
    stop = new AbortController();
  });
  afterEach(() => {
    stop.abort();
    time.end();
  });

  const create = (options: Partial<ConstructorParameters<typeof StateFile<string>>[0]> = {}) =>
    new StateFile<string>({
      path,
      maxBytes: MAX_BYTES,
      format: saved,
      parse: (text) => {
        const { value, boot } = parseSaved(text, schema);
        return boot === 1 ? value : undefined;
      },
      log: logger.log,
      ...options,
    });
  const loaded = (options?: Parameters<typeof create>[0]) => {
    const file = create(options);
    file.load(stop.signal);
    return file;
  };
  const onDisk = () => readFileSync(path, 'utf8');
  const messages = () => logger.lines.map(({ msg }) => msg);
  const stateOf = ({ mode, value }: StateFile<string>) => [mode, value];

  it('is neither read nor written before it is loaded', () => {
    writeFileSync(path, saved('old'));
    const file = create();
    assert.deepEqual(stateOf(file), ['unread', undefined]);
    file.set('new');
    assert.deepEqual([onDisk(), ...stateOf(file)], [saved('old'), 'unread', 'new']);
    writeFileSync(path, saved('of the agent before, at its end'));
    file.load(stop.signal);
    assert.deepEqual([onDisk(), ...stateOf(file)], [saved('new'), 'current', 'new']);
  });

  it('is read once, written only when it changes, for the agent alone, and removed without a value', () => {
    const file = loaded();
    assert.deepEqual(stateOf(file), ['current', undefined]);
    file.set('a');
    const { ino, mode } = statSync(path);
    assert.deepEqual([onDisk(), mode & 0o777], [saved('a'), 0o600]);
    file.set('a');
    assert.equal(statSync(path).ino, ino);
    stop.abort();
    writeFileSync(path, saved('of another'));
    stop = new AbortController();
    file.load(stop.signal);
    assert.deepEqual(stateOf(file), ['current', 'a'], 'the one in memory is newer');
    file.set(undefined);
    assert.ok(!existsSync(path));
    loaded({ permissions: 0o644 }).set('b');
    assert.equal(statSync(path).mode & 0o777, 0o644);
  });

  it('leaves a value that no longer applies until the next one, and removes it with the value', () => {
    writeFileSync(path, '{"value":"x","boot":0}');
    const file = loaded();
    assert.deepEqual([...stateOf(file), existsSync(path)], ['current', undefined, true]);
    file.set(undefined);
    assert.ok(!existsSync(path));
  });

  const unreadable: [fault: string, begin: () => void][] = [
    ['a directory in its place (EISDIR)', () => mkdirSync(path)],
    ['a FIFO', () => execFileSync('mkfifo', [path])],
    ['a symbolic link to itself (ELOOP)', () => symlinkSync(path, path)],
    ['more content than it can have', () => writeFileSync(path, ' '.repeat(MAX_BYTES + 1))],
  ];
  for (const [fault, begin] of unreadable) {
    it(`stays as it is, and is read again, with ${fault}`, async () => {
      begin();
      const before = readdirSync(dirname(path));
      const loads: unknown[] = [];
      const file = create();
      file.load(stop.signal, () => loads.push(stateOf(file)));
      file.set('meanwhile');
      await time.pass(25);
      assert.deepEqual([stateOf(file), readdirSync(dirname(path)), loads], [['unread', 'meanwhile'], before, []]);
      assert.match(file.problem ?? '', new RegExp(path));
      rmSync(path, { recursive: true });
      writeFileSync(path, saved('before'));
      await time.pass(10);
      assert.deepEqual([onDisk(), loads, file.problem], [saved('meanwhile'), [['current', 'meanwhile']], undefined]);
      assert.deepEqual(messages(), ['reading a state file failed; retrying', 'recovered']);
    });
  }

  it('lets its owner merge what was saved with what was set before it could be read', async () => {
    mkdirSync(path);
    const file = loaded({ merge: (before, meanwhile) => `${before}, ${meanwhile}` });
    file.set('new');
    rmdirSync(path);
    writeFileSync(path, saved('old'));
    await time.pass(10);
    assert.deepEqual([onDisk(), file.value], [saved('old, new'), 'old, new']);
  });

  for (const [what, text, suffix] of [
    ['torn', '{"value":', 'corrupt'],
    ['empty', '', 'corrupt'],
    ['of another program', '[1]', 'corrupt'],
    ['of a later format', '{"format":2,"value":"x"}', 'later'],
  ] as const) {
    it(`that is ${what} is put aside, and its value is lost until it is removed`, () => {
      writeFileSync(path, text);
      const file = loaded();
      assert.deepEqual([...stateOf(file), file.problem], ['current', undefined, undefined]);
      assert.ok(file.loss?.startsWith(`${path}: `) && file.loss.endsWith(`(kept as ${path}.${suffix})`), file.loss);
      file.set('new');
      assert.deepEqual([onDisk(), readFileSync(`${path}.${suffix}`, 'utf8')], [saved('new'), text]);
      assert.ok(file.loss !== undefined);
      file.set(undefined);
      assert.equal(file.loss, undefined);
      assert.deepEqual(messages(), ['a state file is unusable; what it remembered is lost']);
    });
  }

  it('that cannot be put aside is not overwritten either', async () => {
    writeFileSync(path, '{');
    mkdirSync(`${path}.corrupt`);
    const file = loaded();
    file.set('new');
    assert.deepEqual([onDisk(), ...stateOf(file), file.loss], ['{', 'unread', 'new', undefined]);
    rmdirSync(`${path}.corrupt`);
    await time.pass(10);
    assert.deepEqual([onDisk(), ...stateOf(file)], [saved('new'), 'current', 'new']);
  });

  it('is written again until it succeeds, with the newest value, and logs that once', async () => {
    const file = loaded();
    mkdirSync(path);
    file.set('a');
    assert.deepEqual(stateOf(file), ['unsaved', 'a']);
    assert.match(file.problem ?? '', /EISDIR|EEXIST|ENOTEMPTY/);
    await time.pass(15);
    file.set('b');
    rmdirSync(path);
    await time.pass(10);
    assert.deepEqual([onDisk(), ...stateOf(file), file.problem], [saved('b'), 'current', 'b', undefined]);
    assert.deepEqual(messages(), ['writing a state file failed; retrying', 'recovered']);
    rmSync(path);
    mkdirSync(join(path, 'full'), { recursive: true });
    file.set(undefined);
    assert.deepEqual(stateOf(file), ['unsaved', undefined]);
    rmSync(path, { recursive: true });
    writeFileSync(path, saved('b'));
    await time.pass(10);
    assert.deepEqual([existsSync(path), ...stateOf(file)], [false, 'current', undefined], 'a removal, too');
  });

  it('is written within 30 s after space is freed on a full disk', async function () {
    const disk = dirname(path);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'plumbline-test', disk], { stdio: 'ignore' });
    } catch {
      skipFor({ name: 'a file system to fill', install: 'run as root' }, this);
    }
    try {
      const announced: (string | undefined)[] = [];
      const file = loaded({ onProblem: (_path, problem) => announced.push(problem) });
      file.set('before');
      assert.throws(() => writeFileSync(join(disk, 'ballast'), Buffer.alloc(2 ** 20)), { code: 'ENOSPC' });
      const long = 'x'.repeat(8192);
      file.set(long);
      assert.match(file.problem ?? '', /ENOSPC/);
      assert.equal(announced.at(-1), file.problem);
      assert.deepEqual([onDisk(), ...stateOf(file)], [saved('before'), 'unsaved', long]);
      await time.pass(60);
      rmSync(join(disk, 'ballast'));
      await time.pass(30);
      assert.deepEqual([onDisk(), ...stateOf(file)], [saved(long), 'current', long]);
      assert.equal(announced.at(-1), undefined);
      assert.deepEqual(readdirSync(disk), ['value.json']);
    } finally {
      execFileSync('umount', [disk]);
    }
  });

  it('is not touched again after its signal, but for a last attempt to write', async () => {
    const file = loaded();
    mkdirSync(path);
    file.set('a');
    rmdirSync(path);
    stop.abort();
    assert.deepEqual([onDisk(), ...stateOf(file)], [saved('a'), 'current', 'a']);
    rmSync(path);
    mkdirSync(path);
    file.set('b');
    rmdirSync(path);
    await time.pass(60);
    assert.deepEqual([existsSync(path), ...stateOf(file)], [false, 'unsaved', 'b']);
    stop = new AbortController();
    file.load(stop.signal);
    assert.deepEqual([onDisk(), ...stateOf(file)], [saved('b'), 'current', 'b'], 'the next run of the duty');
  });
});
