import assert from 'node:assert/strict';
import { parseSchedulerPluginConfig } from '../../../scheduler-plugin/wiring/config.ts';

describe('the settings of the extender', () => {
  it('select the sidecar of plumbline-scheduler by default', () => {
    const { mode, schedulerLease, host } = parseSchedulerPluginConfig([]);
    assert.deepEqual([mode, schedulerLease, host], ['sidecar', 'plumbline-system/plumbline-scheduler', undefined]);
  });

  for (const host of ['0.0.0.0', '10.244.0.7', '::', '127.0.0.1.example.org', '128.0.0.1']) {
    it(`refuse ${host} for a sidecar, because clients outside its pod could reach it`, () => {
      const settings = ['--mode', 'sidecar', '--host', host];
      assert.throws(() => parseSchedulerPluginConfig(settings), /--host .*only on a loopback address.*--mode service/);
    });
  }

  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    it(`accept ${host} for a sidecar`, () => {
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
    it(`refuse --scheduler-lease ${lease} and name the expected form`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--scheduler-lease', lease]), /expected <namespace>\/<name>/);
    });
  }
});
