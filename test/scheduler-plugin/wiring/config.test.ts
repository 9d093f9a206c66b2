import assert from 'node:assert/strict';
import { parseSchedulerPluginConfig } from '../../../scheduler-plugin/wiring/config.ts';

describe('the settings of the extender', () => {
  it('serve on loopback, follow the Lease of plumbline-scheduler, and count unpredictable nodes by default', () => {
    const { schedulerLease, host, port, unpredictable } = parseSchedulerPluginConfig([]);
    assert.deepEqual(
      [schedulerLease, host, port, unpredictable],
      ['plumbline-system/plumbline-scheduler', '127.0.0.1', 8082, 'count-check'],
    );
  });

  for (const host of ['0.0.0.0', '::', '127.0.0.1.example.org']) {
    it(`refuse --host ${host}, because clients outside its pod could reach it`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--host', host]), /--host .*expected a loopback address/);
    });
  }

  for (const [flag, least, most] of [
    ['--port', 0, 65_535],
    ['--probe-port', 0, 65_535],
    ['--answers', 1, 1000],
    ['--reservation-timeout', 1, 3600],
  ] as const) {
    it(`${flag} is a number from ${least} to ${most}`, () => {
      for (const value of [least, most]) assert.doesNotThrow(() => parseSchedulerPluginConfig([flag, `${value}`]));
      for (const value of [least - 1, most + 1, 'x']) {
        assert.throws(() => parseSchedulerPluginConfig([flag, `${value}`]), new RegExp(flag));
      }
    });
  }

  for (const text of [',', '*', 'A', 'a**', Array.from({ length: 129 }, () => 'a').join()]) {
    it(`refuse --dpu-exempt ${text.slice(0, 20)}`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--dpu-exempt', text]), /expected namespaces/);
    });
  }

  for (const lease of ['plumbline-scheduler', 'a/b/c', 'Plumbline/x']) {
    it(`refuse --scheduler-lease ${lease} and name the expected form`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--scheduler-lease', lease]), /expected <namespace>\/<name>/);
    });
  }
});
