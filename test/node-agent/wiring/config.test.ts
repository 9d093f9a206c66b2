import assert from 'node:assert/strict';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';
import { ConfigError } from '../../../runtime/config.ts';

const NAME = ['--node-name', 'worker-1'];

describe('settings of the node agent', () => {
  it('take namespaces with commas, also by prefix', () => {
    const exempt = (text: string) => parseNodeAgentConfig([...NAME, '--gate-exempt', text]).gateExempt;
    assert.deepEqual([exempt('kube-system, openshift-*'), exempt('')], [['kube-system', 'openshift-*'], []]);
  });

  // The lowest and the highest value, and values beyond them.
  const limits: [flag: string, accepted: string[], refused: string[]][] = [
    ['--probe-port', ['0', '65535'], ['-1', '65536', '1.5']],
    ['--dpu-node-lease-duration', ['11', '600'], ['11.5', '601']],
    ['--kubelet-endpoint', ['', 'node:1', '[::1]:10250'], ['node', 'node:', 'node:123456', '/node:1', 'a b:1']],
    ['--node-name', ['a', 'a.b-c', `a${'b'.repeat(252)}`], ['', '-a', 'a-', `a${'b'.repeat(253)}`]],
    ['--run-dir', [`/${'x'.repeat(95)}`], [`/${'x'.repeat(96)}`, 'x']],
    ['--gate-exempt', [Array(128).fill('a').join()], [Array(129).fill('a').join()]],
    ['--state-dir', ['/'], ['', 'x']],
  ];
  for (const [flag, accepted, refused] of limits) {
    it(`${flag} has limits`, () => {
      const parse = (text: string) => parseNodeAgentConfig([...NAME, flag, text]);
      for (const text of accepted) assert.doesNotThrow(() => parse(text), text);
      for (const text of refused) assert.throws(() => parse(text), ConfigError, text);
    });
  }

  const wrong: [string, string[], RegExp][] = [
    ['a missing node name', [], /--node-name/],
    ['an invalid node name', ['--node-name', 'Not A Node'], /--node-name Not A Node/],
    ['exemption of all namespaces', [...NAME, '--gate-exempt', '*'], /--gate-exempt \*/],
    ['a star in the middle', [...NAME, '--gate-exempt', 'a*b'], /"a\*b" is not a valid member/],
  ];
  for (const [name, argv, message] of wrong) {
    it(`refuse ${name}`, () =>
      assert.throws(
        () => parseNodeAgentConfig(argv),
        (error) => error instanceof ConfigError && message.test(error.message),
      ));
  }
});
