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
  ] as const) {
    it(`${flag} is a whole number from ${least} to 65535`, () => {
      for (const port of [least, 65_535]) assert.doesNotThrow(() => parseSchedulerPluginConfig([flag, `${port}`]));
      for (const port of [least - 1, 65_536, 1.5, 'x']) {
        assert.throws(() => parseSchedulerPluginConfig([flag, `${port}`]), new RegExp(flag));
      }
    });
  }

  for (const [flag, least, most] of [
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

  for (const [text, namespaces] of [
    ['', []],
    ['infra', ['infra']],
    ['openshift-*,kube-system', ['openshift-*', 'kube-system']],
  ] as const) {
    it(`--dpu-exempt "${text}" is a list of ${namespaces.length}`, () => {
      assert.deepEqual(parseSchedulerPluginConfig(['--dpu-exempt', text]).dpuExempt, namespaces);
    });
  }
  for (const text of [',', 'a,', '*', 'A', 'a**', 'a b', Array.from({ length: 129 }, () => 'a').join()]) {
    it(`refuse --dpu-exempt ${text.slice(0, 20)}`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--dpu-exempt', text]), /expected namespaces/);
    });
  }

  for (const address of ['off', '127.0.0.1:1', '[::1]:8082', 'localhost:8082']) {
    it(`accept --explain-address ${address}`, () => {
      assert.equal(parseSchedulerPluginConfig(['--explain-address', address]).explainAddress, address);
    });
  }
  for (const address of ['on', '0.0.0.0:8082', '127.0.0.1', '10.0.0.7:8082']) {
    it(`refuse --explain-address ${address}: anyone could read explanations without a certificate`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--explain-address', address]), /expected a loopback address/);
    });
  }

  it('allow a service on every address', () => {
    assert.equal(parseSchedulerPluginConfig(['--mode', 'service', '--host', '0.0.0.0']).host, '0.0.0.0');
  });

  for (const lease of ['plumbline-scheduler', '/x', 'a/b/c', 'Plumbline/x', 'a/']) {
    it(`refuse --scheduler-lease ${lease} and name the expected form`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--scheduler-lease', lease]), /expected <namespace>\/<name>/);
    });
  }
});
