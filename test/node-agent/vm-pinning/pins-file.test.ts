import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createPinsFile, type PinnedGuest } from '../../../node-agent/vm-pinning/pins-file.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

const guest = (pid: number, more: Partial<PinnedGuest> = {}): PinnedGuest => ({
  podUID: `uid-${pid}`,
  pid,
  start: pid * 10,
  held: 'vcpus',
  ...more,
});

describe('the record of pinned guests', () => {
  const temp = tempDirectories();

  function recordOf(path = join(temp(), 'state/vm-pins.json')) {
    mkdirSync(dirname(path), { recursive: true });
    const ended = new Set<number>();
    const { log, lines } = recordingLogger();
    const open = (bootId = 'boot-1') =>
      createPinsFile(path, { bootId, startOf: (pid) => (ended.has(pid) ? undefined : pid * 10), log });
    const saved = () =>
      existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { guests: PinnedGuest[] }).guests : [];
    return { path, ended, lines, open, saved };
  }

  it('is there after a restart, and knows a guest by its pod, its process and the start of that', () => {
    const { open } = recordOf();
    open().remember(guest(7, { held: 'vm' }));
    const record = open();
    assert.deepEqual([record.has('uid-7'), record.has('uid-8')], [true, false]);
    const held = (pid: number, start: number, uid = 'uid-7') => record.held(uid, { pid, start });
    assert.deepEqual([held(7, 70), held(8, 70), held(7, 71), held(7, 70, 'x')], ['vm', ...Array(3).fill(undefined)]);
  });

  it('has the last state of each guest, without those that have ended', () => {
    const { open, saved, ended } = recordOf();
    const record = open();
    for (const one of [guest(1), guest(2), guest(1, { held: 'vm' })]) record.remember(one);
    assert.deepEqual(saved(), [guest(1, { held: 'vm' }), guest(2)]);
    ended.add(1);
    record.remember(guest(3));
    assert.deepEqual(saved(), [guest(2), guest(3)]);
    assert.equal(record.has('uid-1'), false);
  });

  it('is written when it changes, and removed when it is empty', () => {
    const { open, saved, path } = recordOf();
    const record = open();
    record.remember(guest(1));
    writeFileSync(path, '{"guests":[]}');
    record.remember(guest(1));
    record.forget('uid-2');
    assert.deepEqual(saved(), [], 'nothing has changed');
    record.remember(guest(1, { start: 10, held: 'vm' }));
    assert.equal(saved().length, 1);
    record.forget('uid-1');
    assert.equal(existsSync(path), false);
  });

  it('does not outlive the boot of the machine', () => {
    const { open } = recordOf();
    open().remember(guest(1));
    assert.equal(open('boot-2').has('uid-1'), false);
  });

  it('is put aside with a warning if it cannot be parsed, and is empty then', () => {
    const { open, path, lines } = recordOf();
    for (const text of ['{', '{"bootId":"boot-1"}', '{"bootId":"boot-1","guests":[{"podUID":"u","pid":0}]}']) {
      writeFileSync(path, text);
      assert.equal(open().has('u'), false);
      assert.equal(existsSync(path), false, text);
      assert.match(String(lines.at(-1)?.['msg']), /cannot read which VMs were pinned before/);
    }
    assert.ok(readdirSync(dirname(path)).length > 0, 'for a person to look at');
  });

  it('works without its file, with a warning each time', () => {
    const { open, path, lines } = recordOf();
    mkdirSync(path);
    const record = open();
    assert.match(String(lines.at(-1)?.['msg']), /cannot read which VMs were pinned before/);
    record.remember(guest(1));
    assert.match(String(lines.at(-1)?.['msg']), /cannot save which VMs are pinned/);
    assert.equal(record.held('uid-1', guest(1)), 'vcpus');
  });
});
