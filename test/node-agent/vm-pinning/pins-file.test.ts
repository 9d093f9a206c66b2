import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPinsFile, type PinnedGuest } from '../../../node-agent/vm-pinning/pins-file.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

const UNREAD = 'reading which VMs were pinned failed; removed masks may stay in force';
const UNSAVED = 'saving which VMs are pinned failed';

describe('the record of pinned VMs', () => {
  const temp = tempDirectories();
  let path: string;
  let logged: ReturnType<typeof recordingLogger>;
  /** The start of each process by its id. */
  let alive: Map<number, number>;

  beforeEach(() => {
    path = join(temp(), 'state/vm-pins.json');
    logged = recordingLogger();
    alive = new Map([
      [7, 70],
      [8, 80],
      [9, 90],
    ]);
  });
  const open = (bootId = 'boot') => createPinsFile(path, { bootId, startOf: (pid) => alive.get(pid), log: logged.log });
  const guest = (podUID: string, pid: number, scope: PinnedGuest['scope'] = 'vcpus') => ({
    podUID,
    pid,
    start: pid * 10,
    scope,
  });
  const saved = () => JSON.parse(readFileSync(path, 'utf8')) as { bootId: string; guests: PinnedGuest[] };
  const messages = () => logged.lines.map(({ level, msg }) => `${level} ${msg}`);

  it('is read by the next agent of the same boot only', () => {
    const first = open();
    first.remember(guest('a', 7));
    first.remember(guest('b', 8));
    first.remember(guest('b', 8, 'vm'));
    const { ino } = statSync(path);
    first.remember(guest('b', 8, 'vm'));
    assert.equal(statSync(path).ino, ino, 'written only when it changes');
    assert.deepEqual(saved(), { bootId: 'boot', guests: [guest('a', 7), guest('b', 8, 'vm')] });
    const next = open();
    assert.deepEqual([next.has('a'), next.has('b'), next.has('c')], [true, true, false]);
    assert.deepEqual([next.scope('a', guest('a', 7)), next.scope('b', guest('b', 8))], ['vcpus', 'vm']);
    assert.equal(open('another boot').has('a'), false);
    assert.deepEqual(messages(), []);
  });

  it('does not hold another process of the same launcher', () => {
    const record = open();
    record.remember(guest('a', 7));
    for (const other of [
      { pid: 8, start: 70 },
      { pid: 7, start: 71 },
    ])
      assert.equal(record.scope('a', other), undefined);
    assert.equal(record.scope('b', { pid: 7, start: 70 }), undefined);
  });

  it('loses a guest that is forgotten, and every guest whose process has ended or is another one', () => {
    const record = open();
    for (const [uid, pid] of Object.entries({ a: 7, b: 8, c: 9 })) record.remember(guest(uid, pid));
    record.forget('b');
    assert.deepEqual(
      saved().guests.map(({ podUID }) => podUID),
      ['a', 'c'],
    );
    alive.delete(7);
    record.remember(guest('b', 8));
    assert.deepEqual(
      saved().guests.map(({ podUID }) => podUID),
      ['c', 'b'],
    );
    assert.equal(record.has('a'), false);
    alive.set(9, 91);
    record.remember(guest('b', 8, 'vm'));
    assert.deepEqual(saved().guests, [guest('b', 8, 'vm')]);
  });

  it('has no file while no guest is pinned', () => {
    const record = open();
    record.forget('a');
    record.remember(guest('a', 7));
    assert.ok(existsSync(path));
    record.forget('a');
    assert.equal(existsSync(path), false);
    assert.equal(record.has('a'), false);
  });

  it('works without its file, with a log line', () => {
    mkdirSync(`${path}.${process.pid}.tmp`, { recursive: true });
    const record = open();
    record.remember(guest('a', 7));
    assert.equal(record.scope('a', guest('a', 7)), 'vcpus');
    assert.deepEqual(messages(), [`40 ${UNSAVED}`]);
    assert.equal(logged.lines[0]?.['file'], path);
    assert.match(String(logged.lines[0]?.['reason']), /EISDIR/);
  });

  it('starts again from an unusable file, which is kept, with a log line', () => {
    open().remember(guest('a', 7));
    writeFileSync(path, '{"format":2,"bootId":"boot"}');
    assert.equal(open().has('a'), false);
    assert.deepEqual(messages(), [`40 ${UNREAD}`]);
    const [line] = logged.lines;
    assert.deepEqual([line?.['file'], line?.['keptAs']], [path, `${path}.corrupt`]);
    assert.match(
      String(line?.['reason']),
      /it has format 2, this agent reads format 1: a later version has written it/,
    );
    assert.equal(existsSync(`${path}.corrupt`), true);
  });
});
