import assert from 'node:assert/strict';
import { parseSchedulerPluginConfig } from '../../../scheduler-plugin/wiring/config.ts';

describe('the extender’s settings', () => {
  it('by default it is the sidecar of plumbline-scheduler', () => {
    const { mode, schedulerLease, host } = parseSchedulerPluginConfig([]);
    assert.deepEqual([mode, schedulerLease, host], ['sidecar', 'plumbline-system/plumbline-scheduler', undefined]);
  });

  for (const host of ['0.0.0.0', '10.244.0.7', '::', '127.0.0.1.example.org', '128.0.0.1']) {
    it(`a sidecar does not serve on ${host}, where others than its pod could reach it`, () => {
      const settings = ['--mode', 'sidecar', '--host', host];
      assert.throws(() => parseSchedulerPluginConfig(settings), /--host .*only on a loopback address.*--mode service/);
    });
  }

  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    it(`it serves on ${host}`, () => {
      assert.equal(parseSchedulerPluginConfig(['--host', host]).host, host);
    });
  }

  for (const [flag, least] of [
    ['--port', 0],
    ['--probe-port', 0],
    ['--api-port', 1],
  ] as const) {
    it(`${flag} is a whole number from ${least} to 65535`, () => {
      for (const port of [least, 65_535]) assert.doesNotThrow(() => parseSchedulerPluginConfig([flag, `${port}`]));
      for (const port of [least - 1, 65_536, 1.5, 'x']) {
        assert.throws(() => parseSchedulerPluginConfig([flag, `${port}`]), new RegExp(flag));
      }
    });
  }

  for (const lease of ['plumbline-scheduler', '/x', 'a/b/c', 'Plumbline/x', 'a/']) {
    it(`--scheduler-lease ${lease}: refused with what is expected`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--scheduler-lease', lease]), /expected <namespace>\/<name>/);
    });
  }
});
