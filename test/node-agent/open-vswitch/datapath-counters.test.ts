import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findDaemons, isMissing } from '../../../node-agent/open-vswitch/daemons.ts';
import { parseDatapaths } from '../../../node-agent/open-vswitch/datapath-counters.ts';
import { askDatapaths, registerDatapathMetrics } from '../../../node-agent/open-vswitch/datapath-metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

/** The output of ovs-appctl dpctl/show -s of Open vSwitch 3.1. */
const TWO_DATAPATHS = `system@ovs-system:
  lookups: hit:9102 missed:77 lost:3
  flows: 12
  masks: hit:12043 total:4 hit/pkt:1.31
  caches:
    masks-cache: size:256
  port 0: ovs-system (internal)
    RX packets:0 errors:? dropped:? overruns:? frame:?
    TX packets:0 errors:? dropped:? aborted:? carrier:?
    collisions:?
    RX bytes:0  TX bytes:0
  port 1: eth1
    RX packets:100 errors:0 dropped:7 overruns:0 frame:0
    TX packets:90 errors:0 dropped:2 aborted:0 carrier:0
    collisions:0
    RX bytes:6400 (6.2 KiB)  TX bytes:5800 (5.7 KiB)
netdev@ovs-netdev:
  lookups: hit:1 missed:2 lost:0
  flows: 0
  port 0: br0 (tap)
    RX packets:0 errors:0 dropped:1 overruns:0 frame:0
    TX packets:0 errors:0 dropped:4 aborted:0 carrier:0
`;

describe('the output of dpctl/show -s', () => {
  it('gives lookups, flows and the drops of all ports for each datapath', () => {
    assert.deepEqual(parseDatapaths(TWO_DATAPATHS), [
      { datapath: 'system@ovs-system', upcalls: 77, lost: 3, flows: 12, dropped: { rx: 7, tx: 2 } },
      { datapath: 'netdev@ovs-netdev', upcalls: 2, lost: 0, flows: 0, dropped: { rx: 1, tx: 4 } },
    ]);
  });

  it('gives only a few datapaths with short names, because each is a series of metrics', () => {
    const many = Array.from({ length: 1000 }, (_, i) => `system@dp${i}:\n  flows: ${i}\n`).join('');
    assert.equal(parseDatapaths(many).length, 8);
    assert.deepEqual(parseDatapaths(`${'x'.repeat(100)}@y:\n  flows: 1\n`), []);
    assert.deepEqual(parseDatapaths(`a@b:\n  flows: ${'9'.repeat(1000)}\n`)[0]?.flows, 999_999_999_999_999);
  });

  it('takes time in proportion to the length of its lines', () => {
    const cost = (text: string) => {
      const before = process.cpuUsage();
      parseDatapaths(`a@b:\n${text}`);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    for (const line of ['@', 'lookups: ', 'lookups: missed', 'flows: 1', 'RX packets: dropped', ' ', ':']) {
      cost(line.repeat(10_000));
      const [small, large] = [cost(line.repeat(20_000)), cost(line.repeat(80_000))];
      assert.ok(large < 10 * small + 50, `${JSON.stringify(line)}: ${small} ms and ${large} ms`);
    }
  });

  it('gives nothing if nothing is recognised', () => {
    assert.deepEqual(parseDatapaths(''), []);
    assert.deepEqual(parseDatapaths('no datapath\n'), []);
  });

  it('lacks a number that the datapath does not report', () => {
    assert.deepEqual(parseDatapaths('a@b:\n  flows: ?\n'), [
      { datapath: 'a@b', upcalls: undefined, lost: undefined, flows: undefined, dropped: { rx: 0, tx: 0 } },
    ]);
  });

  describe('without Open vSwitch', () => {
    const temp = tempDirectories();
    it('reads no pidfile that is a pipe or points elsewhere, and does not block', async () => {
      const rundir = temp();
      const pidfile = join(rundir, 'ovs-vswitchd.pid');
      for (const make of [
        () => execFileSync('mkfifo', [pidfile]),
        () => symlinkSync('/dev/zero', pidfile),
        () => writeFileSync(pidfile, '1/../../etc/x'),
        () => writeFileSync(pidfile, '7'.repeat(100_000)),
      ]) {
        make();
        await assert.rejects(askDatapaths(rundir), /not a regular file|no process id|larger than 64 bytes/);
        assert.ok(findDaemons(rundir).every((found) => isMissing(found) && found.message.length < 300));
        rmSync(pidfile);
      }
    });

    it('exports no metrics, counts the failure and logs it once', async () => {
      const { log, lines } = recordingLogger();
      const registry = new Registry();
      registerDatapathMetrics(registry, { rundir: temp(), log });
      await registry.metrics();
      const text = await registry.metrics();
      assert.match(text, /plumbline_ovs_datapath_failures_total 2/);
      assert.doesNotMatch(text, /plumbline_ovs_datapath_upcalls_total\{/);
      assert.equal(lines.length, 1);
    });
  });
});
