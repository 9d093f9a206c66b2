import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { CpuSet } from '../../model/cpu-set.ts';
import { readObservedLease } from '../../node-agent/gate/state-file.ts';
import { createLastMapFile } from '../../node-agent/networks/map-source.ts';
import { createMasksFile, createSavedMasks } from '../../node-agent/ovs-affinity/saved-masks.ts';
import { createPinsFile } from '../../node-agent/vm-pinning/pins-file.ts';
import { tempDirectories } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';

const LATER = { format: 2, bootId: 'boot', anythingElse: [1, 2] };
const SAID = /it has format 2, this agent reads format 1: a later version has written it/;

describe('files in /var/lib/plumbline from an agent of another version', () => {
  const temp = tempDirectories();
  const fileWith = (content: object) => {
    const path = `${temp()}/file.json`;
    writeFileSync(path, JSON.stringify(content));
    return path;
  };

  describe('saved masks of Open vSwitch’s threads', () => {
    const one = { name: 'ovs-vswitchd', role: 'daemon', pid: 7, start: 3, main: '0-1', odd: [] };

    it('are read if they have more fields', () => {
      const path = fileWith({ format: 1, bootId: 'boot', processes: [{ ...one, more: 1 }], more: 2 });
      const [found] = createMasksFile(path, 'boot').load();
      assert.deepEqual([found?.pid, found?.originalMasks.main.toString()], [7, '0-1']);
    });

    it('in a later format are kept under another name, and threads get the CPUs of a service', () => {
      const path = fileWith(LATER);
      const saved = createSavedMasks({
        file: createMasksFile(path, 'boot'),
        startOf: () => undefined,
        unconfined: () => CpuSet.parse('0-3'),
      });
      const [problem] = saved.recall([]);
      assert.match(problem?.text ?? '', SAID);
      assert.match(
        problem?.text ?? '',
        /kept as .*if the feature is turned off, threads get the CPUs of the machine’s first process \(0-3\)/,
      );
      assert.deepEqual(JSON.parse(readFileSync(`${path}.corrupt`, 'utf8')), LATER);
    });
  });

  it('record of pinned VMs in a later format: kept under another name, logged, and started again', () => {
    const path = fileWith(LATER);
    const logged = recordingLogger();
    const pins = createPinsFile(path, { bootId: 'boot', startOf: () => 3, log: logged.log });
    assert.match(String(logged.lines[0]?.['reason']), SAID);
    assert.match(String(logged.lines[0]?.['msg']), /removed masks may stay in force/);
    pins.remember({ podUID: 'a', pid: 7, start: 3, scope: 'vm' });
    assert.deepEqual(JSON.parse(readFileSync(`${path}.corrupt`, 'utf8')), LATER);
    const again = createPinsFile(path, { bootId: 'boot', startOf: () => 3, log: logged.log });
    assert.equal(again.scope('a', { pid: 7, start: 3 }), 'vm');
    assert.equal(logged.lines.length, 1, 'and what it has written itself it reads');
  });

  it('last good network map in a later format: ignored with a log line', () => {
    const said: string[] = [];
    const file = createLastMapFile(fileWith(LATER), (why) => said.push(why));
    assert.equal(file.load(CpuSet.parse('0')), undefined);
    assert.match(said.join(), SAID);
    assert.equal(createLastMapFile('/nonexistent/map', (why) => said.push(why)).load(CpuSet.parse('0')), undefined);
    assert.equal(said.length, 1, 'no file is nothing to be said');
  });

  it('gate’s state: more fields are ignored; in another form the DPU counts as alive only after a renewal is seen', () => {
    const lease = { bootId: 'boot', renewTime: 't', changedAt: 1000, readAt: 1000, changes: 1 };
    assert.equal(readObservedLease(fileWith({ lease: { ...lease, more: 1 }, more: 2 }), 'boot', 5)?.renewTime, 't');
    const other = fileWith({ format: 2, leases: [lease] });
    assert.equal(readObservedLease(other, 'boot', 5), undefined);
    assert.ok(existsSync(other));
  });
});
