import assert from 'node:assert/strict';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';

const parse = (...flags: string[]) => parseNodeAgentConfig(['--node-name', 'worker-1', ...flags]);

describe('settings of the gate', () => {
  it('off by default, and where it is on, what does least', () => {
    const { gate, gateStatus, gateScope, gateForm, gateAtEnd, gateWhenStale, gateWhenAbsent, dpuUnknown } = parse();
    assert.deepEqual([gate, gateStatus, gateScope, gateForm, gateAtEnd], ['off', 'off', 'all', 'chained', 'remove']);
    assert.deepEqual([gateWhenStale, gateWhenAbsent, dpuUnknown], ['last-known', 'open', 'ready']);
    assert.deepEqual(parse().gateExempt, ['kube-system', 'ovn-kubernetes', 'plumbline-system']);
    assert.equal(parse().cniConfDir, undefined, 'nothing is installed without a directory');
  });

  it('lists with commas: namespaces, by their beginning too, resources, plugins', () => {
    const { gateExempt, gateDevices, gateInterpose } = parse(
      ...['--gate-exempt', 'kube-system, openshift-*', '--gate-devices', 'nvidia.com/bf3,openshift.io/dpu'],
      ...['--gate-interpose', 'ovn-k8s-cni-overlay'],
    );
    assert.deepEqual(gateExempt, ['kube-system', 'openshift-*']);
    assert.deepEqual([gateDevices, gateInterpose], [['nvidia.com/bf3', 'openshift.io/dpu'], ['ovn-k8s-cni-overlay']]);
    assert.deepEqual(parse('--gate-exempt', '').gateExempt, []);
  });

  const wrongs: [string, string[], RegExp][] = [
    ['everything exempt', ['--gate-exempt', '*'], /--gate-exempt \*/],
    ['a star in the middle', ['--gate-exempt', 'a*b'], /"a\*b" is not a valid member/],
    ['a resource without a domain', ['--gate-devices', 'cpu'], /"cpu" is not a valid member/],
    ['the gate before itself', ['--gate-interpose', 'plumbline-gate'], /--gate-interpose plumbline-gate/],
    ['a plugin outside its directory', ['--gate-interpose', '../sh'], /"\.\.\/sh" is not a valid member/],
    ['a socket with too long a path', ['--gate-socket', `/${'x'.repeat(107)}`], /at most 107 bytes/],
    ['to be removed from nowhere', ['--gate', 'remove'], /--gate remove needs --cni-conf-dir/],
    [
      'a path that would need an escape',
      ['--gate-state', '/run/"x"'],
      /remove the quote, backslash or control character/,
    ],
    ['more namespaces than the state file holds', ['--gate-exempt', 'a,'.repeat(200)], /expected at most 128 members/],
    ['a stale state that never is', ['--gate-stale-after', '0'], /--gate-stale-after 0/],
    ['an empty namespace of the lease', ['--dpu-lease-namespace', ''], /--dpu-lease-namespace/],
  ];
  for (const [what, flags, message] of wrongs)
    it(`refused: ${what}`, () => assert.throws(() => parse(...flags), { message }));
});
