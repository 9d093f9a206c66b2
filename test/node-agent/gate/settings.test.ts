import assert from 'node:assert/strict';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';

const parse = (...flags: string[]) => parseNodeAgentConfig(['--node-name', 'worker-1', ...flags]);

describe('settings of the gate', () => {
  it('are off by default; the defaults of an enabled gate do the least', () => {
    const { gate, gateStatus, gateScope, gateExempt, cniConfDir, cniBinDir, runDir } = parse();
    assert.deepEqual([gate, gateStatus, gateScope], ['off', 'off', 'all']);
    assert.deepEqual(gateExempt, ['kube-system', 'ovn-kubernetes', 'plumbline-system']);
    assert.deepEqual([cniConfDir, cniBinDir, runDir], ['/etc/cni/net.d', '/opt/cni/bin', '/run/plumbline']);
  });

  it('take namespaces with commas, also by prefix', () => {
    const { gateExempt } = parse('--gate-exempt', 'kube-system, openshift-*');
    assert.deepEqual(gateExempt, ['kube-system', 'openshift-*']);
    assert.deepEqual(parse('--gate-exempt', '').gateExempt, []);
  });

  const wrongs: [string, string[], RegExp][] = [
    ['exemption of all namespaces', ['--gate-exempt', '*'], /--gate-exempt \*/],
    ['a star in the middle', ['--gate-exempt', 'a*b'], /"a\*b" is not a valid member/],
    ['a directory too long for a socket', ['--run-dir', `/${'x'.repeat(96)}`], /too long for the path of a socket/],
    ['more namespaces than the state file holds', ['--gate-exempt', 'a,'.repeat(200)], /expected at most 128 members/],
    ['an empty namespace of the Lease', ['--dpu-lease-namespace', ''], /--dpu-lease-namespace/],
  ];
  for (const [what, flags, message] of wrongs)
    it(`refuse ${what}`, () => assert.throws(() => parse(...flags), { message }));
});
