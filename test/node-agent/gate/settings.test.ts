import assert from 'node:assert/strict';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';

const parse = (...flags: string[]) => parseNodeAgentConfig(['--node-name', 'worker-1', ...flags]);

describe('settings of the gate', () => {
  it('are off by default; the defaults of an enabled gate do the least', () => {
    const { gate, gateStatus, gateScope, gateForm, gateAtEnd, gateWhenStale, gateWhenAbsent, dpuUnknown } = parse();
    assert.deepEqual([gate, gateStatus, gateScope, gateForm, gateAtEnd], ['off', 'off', 'all', 'chained', 'remove']);
    assert.deepEqual([gateWhenStale, gateWhenAbsent, dpuUnknown], ['last-known', 'open', 'ready']);
    assert.deepEqual(parse().gateExempt, ['kube-system', 'ovn-kubernetes', 'plumbline-system']);
    assert.equal(parse().cniConfDir, undefined, 'nothing is installed without a directory');
  });

  it('take lists with commas: namespaces, also by prefix, resources and plugins', () => {
    const { gateExempt, gateDevices, gateInterpose } = parse(
      ...['--gate-exempt', 'kube-system, openshift-*', '--gate-devices', 'nvidia.com/bf3,openshift.io/dpu'],
      ...['--gate-interpose', 'ovn-k8s-cni-overlay'],
    );
    assert.deepEqual(gateExempt, ['kube-system', 'openshift-*']);
    assert.deepEqual([gateDevices, gateInterpose], [['nvidia.com/bf3', 'openshift.io/dpu'], ['ovn-k8s-cni-overlay']]);
    assert.deepEqual(parse('--gate-exempt', '').gateExempt, []);
  });

  const wrongs: [string, string[], RegExp][] = [
    ['exemption of all namespaces', ['--gate-exempt', '*'], /--gate-exempt \*/],
    ['a star in the middle', ['--gate-exempt', 'a*b'], /"a\*b" is not a valid member/],
    ['a resource without a domain', ['--gate-devices', 'cpu'], /"cpu" is not a valid member/],
    ['the gate as its own plugin', ['--gate-interpose', 'plumbline-gate'], /--gate-interpose plumbline-gate/],
    ['a plugin outside its directory', ['--gate-interpose', '../sh'], /"\.\.\/sh" is not a valid member/],
    ['a socket with too long a path', ['--gate-socket', `/${'x'.repeat(107)}`], /at most 107 bytes/],
    ['removal without a directory', ['--gate', 'remove'], /--gate remove needs --cni-conf-dir/],
    ['a path that needs an escape', ['--gate-state', '/run/"x"'], /remove the quote, backslash or control character/],
    ['more namespaces than the state file holds', ['--gate-exempt', 'a,'.repeat(200)], /expected at most 128 members/],
    ['a state that never becomes stale', ['--gate-stale-after', '0'], /--gate-stale-after 0/],
    ['an empty namespace of the Lease', ['--dpu-lease-namespace', ''], /--dpu-lease-namespace/],
  ];
  for (const [what, flags, message] of wrongs)
    it(`refuse ${what}`, () => assert.throws(() => parse(...flags), { message }));
});
