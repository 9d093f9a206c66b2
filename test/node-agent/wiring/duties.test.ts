import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient } from '../../../kube/client.ts';
import { Failures } from '../../../node-agent/lifecycle/duty.ts';
import { type NodeAgentConfig, parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';
import { createDuties, kubeletConfigSources } from '../../../node-agent/wiring/duties.ts';
import { createGateDuties, stateOf } from '../../../node-agent/wiring/gate.ts';
import type { AgentParts } from '../../../node-agent/wiring/parts.ts';
import { eventually, recordingLogger, tempDirectories, testMetrics, writeTree } from '../support.ts';

const temp = tempDirectories();

/** The parts of duties, with every path below its own directory; there is no API server. */
function partsOf(flags: readonly string[] = [], changes: Partial<AgentParts> = {}) {
  const directory = temp();
  const inside = ['kubelet-dir', 'state-dir', 'ovs-rundir', 'sysfs-root', 'cgroup-root', 'cni-conf-dir', 'cni-bin-dir'];
  const places = inside.flatMap((name) => [`--${name}`, join(directory, name)]);
  const config: NodeAgentConfig = parseNodeAgentConfig([
    '--node-name',
    'n1',
    ...places,
    '--run-dir',
    directory,
    ...flags,
  ]);
  const logged = recordingLogger();
  const parts: AgentParts = {
    config,
    nodeName: config.nodeName,
    client: {} as KubeClient,
    events: { record: () => undefined, flush: async () => undefined },
    metrics: testMetrics(),
    log: logged.log,
    token: () => undefined,
    tokenFile: undefined,
    gateProgram: 'none',
    failures: new Failures(),
    ...changes,
  };
  return { parts, directory, logged };
}

const HOST = ['assignments', 'networks', 'report', 'heartbeat', 'device-plugin', 'moved-networks'];
const names = (flags: readonly string[], changes: Partial<AgentParts> = {}) =>
  createDuties(partsOf(flags, changes).parts).duties.map(({ name }) => name);

describe('the duties of each mode', () => {
  const off = '--dpu-node-lease-renew-interval 0';
  const cases: [flags: string, expected: string[]][] = [
    ['', [...HOST, 'ovs-affinity', 'vm-pinning']],
    ['--vm-pinning off', [...HOST, 'ovs-affinity']],
    ['--gate on', [...HOST, 'ovs-affinity', 'vm-pinning', 'gate', 'gate-state', 'gate-installer']],
    ['--gate remove', [...HOST, 'ovs-affinity', 'vm-pinning', 'gate-removal']],
    ['--mode dpu-host', [...HOST, 'vm-pinning', 'dpu-health', 'dpu-lease']],
    ['--mode dpu-host --dpu-lease observe', [...HOST, 'vm-pinning', 'dpu-health']],
    [`--mode dpu-host ${off}`, [...HOST, 'vm-pinning', 'dpu-lease-release']],
    [`--mode dpu-host --dpu-lease observe ${off}`, [...HOST, 'vm-pinning']],
    ['--mode dpu', ['dpu-lease']],
    ['--mode dpu --dpu-lease observe', []],
    [`--mode dpu ${off}`, []],
  ];
  for (const [flags, expected] of cases) {
    const others = expected.filter((name) => !HOST.includes(name)).join(', ');
    it(`${flags || 'no flags'}: ${others || 'no others'}`, () =>
      assert.deepEqual(names(flags === '' ? [] : flags.split(' ')), expected));
  }

  it('a DPU renews a token in a file; a token in the kubeconfig cannot be renewed, with a log line', () => {
    const token = () => 'x';
    for (const [changes, expected, lines] of [
      [{ tokenFile: '/token', token }, ['dpu-lease', 'dpu-token'], 0],
      [{ token }, ['dpu-lease'], 1],
      [{}, ['dpu-lease'], 0],
    ] as const) {
      const { parts, logged } = partsOf(['--mode', 'dpu'], changes);
      assert.deepEqual(
        createDuties(parts).duties.map(({ name }) => name),
        expected,
      );
      assert.equal(logged.lines.length, lines);
    }
  });
});

describe('the gate’s duties', () => {
  const none = { assignments: undefined, ovs: undefined, health: undefined };

  it('write a state file with settings and the state of the DPU', () => {
    const { config } = partsOf(['--gate', 'on', '--gate-exempt', 'a,b']).parts;
    const { at, ...state } = stateOf(config, undefined);
    assert.deepEqual(state, { dpu: 'none', reason: '', status: false, scope: 'all', exempt: ['a', 'b'] });
    const now = Number(process.hrtime.bigint() / 1_000_000n);
    assert.ok(Number.isInteger(at) && at <= now && at > now - 600_000, `${at}, now ${now}`);
    const states = [true, false].map((ready) => stateOf(config, { ready, reason: 'r' }));
    assert.deepEqual(
      states.map(({ dpu, reason }) => `${dpu} ${reason}`),
      ['ready r', 'not-ready r'],
    );
    assert.equal(stateOf(partsOf(['--gate', 'on', '--gate-status', 'on']).parts.config, undefined).status, true);
  });

  it('write the state file at the start and at each check of the Lease until the end', async () => {
    const { parts, directory } = partsOf(['--gate', 'on']);
    const listeners = new Set<() => void>();
    const dpu = { ready: true, reason: 'renewed' };
    const health = {
      current: () => dpu,
      observation: () => ({ renewTime: '2026-01-01T00:00:00Z', changedAt: 5, answeredAt: 6, since: 5, changes: 2 }),
      subscribe: (listener: () => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    const duties = createGateDuties(parts, { ...none, health: health as never });
    const stopping = new AbortController();
    const running = duties.find(({ name }) => name === 'gate-state')?.run(stopping.signal);
    const saved = () => JSON.parse(readFileSync(join(directory, 'gate.state'), 'utf8')) as Record<string, unknown>;
    assert.equal(saved()['dpu'], 'ready');
    assert.deepEqual((saved()['lease'] as Record<string, unknown>)['changes'], 2);
    dpu.ready = false;
    for (const listener of listeners) listener();
    assert.equal(saved()['dpu'], 'not-ready');
    stopping.abort();
    await running;
    assert.equal(listeners.size, 0);
  });

  it('with removal, delete only their own files and then wait for the end', async () => {
    const { parts, directory, logged } = partsOf(['--gate', 'remove']);
    writeTree(directory, { 'cni-conf-dir/10.conf': '', 'cni-bin-dir/plumbline-gate': '', 'cni-bin-dir/bridge': '' });
    const [removal] = createGateDuties(parts, none);
    const stopping = new AbortController();
    const running = removal?.run(stopping.signal);
    await eventually(() => logged.lines.length === 1, 'it says what it has removed');
    assert.deepEqual(readdirSync(join(directory, 'cni-bin-dir')), ['bridge']);
    assert.deepEqual(logged.lines[0]?.['removed'], [join(directory, 'cni-bin-dir/plumbline-gate')]);
    stopping.abort();
    await running;
  });
});

it('an empty --kubelet-endpoint: the kubelet is not asked for its configuration', () => {
  assert.equal(kubeletConfigSources(partsOf(['--kubelet-endpoint', '']).parts).configz, undefined);
});
