import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { KubeClient } from '../../kube/client.ts';
import type { NodeTopology } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { observedLease } from '../../node-agent/gate/state-file.ts';
import { Problems } from '../../node-agent/lifecycle/duty.ts';
import { bootId, machineSeconds } from '../../node-agent/processes/proc.ts';
import { type NodeAgentConfig, parseNodeAgentConfig } from '../../node-agent/wiring/config.ts';
import { createDpuLeaseDuties, createGateDuties, stateOf } from '../../node-agent/wiring/dpu.ts';
import { barrierOf, createDuties, createReportDuty, kubeletConfigSources } from '../../node-agent/wiring/duties.ts';
import type { AgentParts, HostParts } from '../../node-agent/wiring/parts.ts';
import { createOvsDuty } from '../../node-agent/wiring/thread-affinity.ts';
import { ConfigError } from '../../runtime/config.ts';
import { GATED, PASS, useGate } from '../native/gate-stage.ts';
import { needs, skipWithout } from '../support/parts.ts';
import { createFakeApi } from './api-stand-in.ts';
import { machine, rest } from './ovs-affinity/stage.ts';
import { inputs, knownView, networks } from './report/inputs-fixture.ts';
import {
  eventually,
  recordingLogger,
  settableView,
  tempDirectories,
  testMetrics,
  turns,
  useDuties,
  writeTree,
} from './support.ts';
import { placesIn } from './wiring/agent-stage.ts';

const temp = tempDirectories();

/** The parts of duties, with every path below its own directory, except `places`; there is no API server. */
function partsOf(
  flags: readonly string[] = [],
  changes: Partial<AgentParts> = {},
  places: Partial<NodeAgentConfig> = {},
) {
  const directory = temp();
  const config = { ...parseNodeAgentConfig(['--node-name', 'n1', ...placesIn(directory), ...flags]), ...places };
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
    failures: new Problems(),
    unsaved: new Problems(),
    ...changes,
  };
  return { parts, directory, logged };
}

const namesOf = (parts: AgentParts) => createDuties(parts).duties.map(({ name }) => name);

describe('the duties of each mode', () => {
  const HOST = 'kubelet-runs assignments networks report device-plugin moved-networks';
  const INTERRUPTS = 'interrupt-moves interference';
  const off = '--dpu-node-lease-renew-interval 0';
  const cases: [flags: string, common: string, others: string][] = [
    ['', HOST, `ovs-affinity ovs-answers vm-pinning ${INTERRUPTS} gate-removal`],
    ['--vm-pinning off', HOST, `ovs-affinity ovs-answers ${INTERRUPTS} gate-removal`],
    ['--interrupts off', HOST, 'ovs-affinity ovs-answers vm-pinning interrupt-moves gate-removal'],
    ['--gate on', HOST, `ovs-affinity ovs-answers vm-pinning ${INTERRUPTS} gate gate-state gate-installer`],
    ['--gate remove', HOST, `ovs-affinity ovs-answers vm-pinning ${INTERRUPTS} gate-removal`],
    ['--mode dpu-host', HOST, `vm-pinning ${INTERRUPTS} dpu-health dpu-lease gate-removal`],
    ['--mode dpu-host --dpu-lease observe', HOST, `vm-pinning ${INTERRUPTS} dpu-health gate-removal`],
    [`--mode dpu-host ${off}`, HOST, `vm-pinning ${INTERRUPTS} dpu-lease-release gate-removal`],
    [`--mode dpu-host --dpu-lease observe ${off}`, HOST, `vm-pinning ${INTERRUPTS} gate-removal`],
    ['--mode dpu', '', 'dpu-lease'],
    ['--mode dpu --dpu-lease observe', '', ''],
    [`--mode dpu ${off}`, '', ''],
  ];
  for (const [flags, common, others] of cases) {
    it(`${flags || 'no flags'}: ${others || 'no others'}`, () => {
      const { parts } = partsOf(flags.split(' ').filter(Boolean));
      assert.equal(namesOf(parts).join(' '), `${common} ${others}`.trim());
    });
  }

  it('a DPU renews a token in a file; a token in the kubeconfig cannot be renewed, with a log line', () => {
    const token = () => 'x';
    for (const [changes, expected, lines] of [
      [{ tokenFile: '/token', token }, 'dpu-lease dpu-token', 0],
      [{ token }, 'dpu-lease', 1],
      [{}, 'dpu-lease', 0],
    ] as const) {
      const { parts, logged } = partsOf(['--mode', 'dpu'], changes);
      assert.deepEqual([namesOf(parts).join(' '), logged.lines.length], [expected, lines]);
    }
  });
});

describe('the gate’s duties', () => {
  const start = useDuties();
  const none = { assignments: undefined, vacate: async () => {}, health: undefined };

  it('write a state file with settings and the state of the DPU', () => {
    const { config } = partsOf(['--gate', 'on', '--dpu-exempt', 'a,b']).parts;
    const { at, ...state } = stateOf(config, undefined);
    assert.deepEqual(state, { dpu: 'none', reason: '', status: false, scope: 'all', exempt: ['a', 'b'] });
    const now = Number(process.hrtime.bigint() / 1_000_000n);
    assert.ok(Number.isInteger(at) && at <= now && at > now - 600_000, `${at}, now ${now}`);
    const states = [true, false].map((ready) => stateOf(config, { ready, reason: 'r' }));
    assert.equal(states.map(({ dpu, reason }) => `${dpu} ${reason}`).join(), 'ready r,not-ready r');
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
    const end = start(duties.find(({ name }) => name === 'gate-state')!);
    const saved = () =>
      JSON.parse(readFileSync(join(directory, 'run/plumbline/gate.state'), 'utf8')) as Record<string, unknown>;
    assert.equal(saved()['dpu'], 'ready');
    assert.deepEqual((saved()['lease'] as Record<string, unknown>)['changes'], 2);
    dpu.ready = false;
    for (const listener of listeners) listener();
    assert.equal(saved()['dpu'], 'not-ready');
    await end();
    assert.equal(listeners.size, 0);
  });

  it('with removal, delete only their own files and then wait for the end', async () => {
    const { parts, directory, logged } = partsOf(['--gate', 'remove']);
    writeTree(directory, { 'etc/cni/net.d/10.conf': '', 'opt/cni/bin/plumbline-gate': '', 'opt/cni/bin/bridge': '' });
    const [removal] = createGateDuties(parts, none);
    start(removal!);
    await eventually(() => logged.lines.length === 1, 'it says what it has removed');
    assert.deepEqual(readdirSync(join(directory, 'opt/cni/bin')), ['bridge']);
    assert.deepEqual(logged.lines[0]?.['removed'], [join(directory, 'opt/cni/bin/plumbline-gate')]);
  });
});

describe('the barrier before a container starts', () => {
  const gate = useGate();
  const start = useDuties();
  const { signal } = new AbortController();
  /** A part whose CPUs are clear, or not, when the test says so. */
  const part = () => {
    const cpus: string[] = [];
    let end = (_error?: Error) => {};
    const cleared = new Promise<void>((resolve, reject) => {
      end = (error) => (error === undefined ? resolve() : reject(error));
    });
    const vacate = (vacated: CpuSet) => {
      cpus.push(vacated.toString());
      return cleared;
    };
    return { vacate, cpus, end: (error?: Error) => end(error) };
  };

  for (const [label, ovs, interrupts] of [
    ['Open vSwitch is last', 1, 0],
    ['interrupts are last', 0, 1],
  ] as const) {
    it(`opens when all have left the CPUs: ${label}`, async () => {
      const parts = [part(), part()];
      let isOpen = false;
      const barrier = barrierOf([...parts, undefined])(CpuSet.parse('2-3'), signal).then(() => {
        isOpen = true;
      });
      parts[interrupts]?.end();
      await turns();
      assert.equal(isOpen, false);
      parts[ovs]?.end();
      await barrier;
      for (const { cpus } of parts) assert.deepEqual(cpus, ['2-3']);
    });
  }

  it('is closed if one of them stays there', async () => {
    const [ovs, interrupts] = [part(), part()];
    ovs.end();
    interrupts.end(new Error('interrupts stay'));
    await assert.rejects(barrierOf([ovs, interrupts])(CpuSet.parse('2-3'), signal), /interrupts stay/);
  });

  it('the gate asks it for the CPUs of a pod, also on a host without Open vSwitch', async () => {
    const places = { runDir: gate.directory, cniBinDir: gate.binDir };
    const { parts } = partsOf(['--gate', 'on', '--mode', 'dpu-host'], {}, places);
    const interrupts = part();
    const owner = { podUID: 'uid-1', container: 'compute', cpus: CpuSet.parse('2-3'), name: undefined };
    const assignments = { readNow: () => ({ assignments: [owner] }) } as never;
    const duties = createGateDuties(parts, { assignments, vacate: interrupts.vacate, health: undefined });
    start(duties.find(({ name }) => name === 'gate')!);
    await eventually(() => existsSync(gate.socket), 'it listens');
    const call = gate.call({ conf: GATED });
    await eventually(() => interrupts.cpus.length > 0, 'the gate asks');
    interrupts.end(new Error('interrupts stay'));
    const { json } = await call;
    assert.deepEqual([json()['code'], json()['msg']], [11, 'CPUs 2-3 are not clear yet: interrupts stay']);
    assert.deepEqual(interrupts.cpus, ['2-3']);
  });
});

describe('a rolling update on a node with a dead DPU', () => {
  const gate = useGate();
  const start = useDuties();
  const DUTIES = ['dpu-health', 'gate', 'gate-state', 'gate-installer', 'gate-removal'];
  let confDir: string;

  /** @returns what ends it */
  const agent = (policy: 'on' | 'off') => {
    const places = { runDir: gate.directory, cniBinDir: gate.binDir, cniConfDir: confDir };
    const get = async () => ({ metadata: { name: 'ovn-dpu-n1' }, spec: { renewTime: '2026-01-01T00:00:00.000000Z' } });
    const changes = { client: { get } as unknown as KubeClient, gateProgram: gate.shim };
    const { parts } = partsOf(['--mode', 'dpu-host', '--gate', policy], changes, places);
    const { duties, health } = createDpuLeaseDuties(parts);
    const all = [...duties, ...createGateDuties(parts, { assignments: undefined, vacate: async () => {}, health })];
    const ends = all.filter(({ name }) => DUTIES.includes(name)).map((duty) => start(duty));
    return async () => void (await Promise.all(ends.map((end) => end())));
  };
  /** Sets a pod's network up as a runtime does: with the first configuration. @returns the error, if any */
  const add = async (): Promise<unknown> => {
    const [first = ''] = readdirSync(confDir).sort();
    const conf = JSON.parse(readFileSync(join(confDir, first), 'utf8')) as { type: string };
    if (conf.type !== 'plumbline-gate') return undefined;
    const { code, json } = await gate.call({ conf });
    return code === 0 ? undefined : json()['msg'];
  };
  const refuses = async (when: string) => assert.match(String(await add()), /^DPU Not Ready: its lease/, when);

  it('admits no pod before, between and after the agents; an agent that disables the gate does', async () => {
    confDir = temp();
    const primary = { cniVersion: '1.1.0', name: 'net', type: PASS };
    writeFileSync(join(confDir, '10-net.conf'), JSON.stringify(primary));
    const [renewTime, now] = ['2026-01-01T00:00:00.000000Z', machineSeconds()];
    const observation = { renewTime, changedAt: now - 100, answeredAt: now - 10, since: now - 100, changes: 3 };
    const lease = observedLease(observation, bootId());
    writeFileSync(gate.state, JSON.stringify({ lease }));
    const isGated = () => existsSync(join(confDir, '00-multus-plumbline-gate.json'));
    const first = agent('on');
    await eventually(isGated, 'the gate is installed');
    await refuses('with the first agent');
    await first();
    await refuses('without an agent');
    const second = agent('on');
    await refuses('at the start of the second agent');
    await eventually(() => existsSync(gate.socket), 'it listens');
    await refuses('with the second agent');
    await second();
    agent('off');
    assert.equal(await add(), undefined, 'disabled');
    assert.equal(existsSync(gate.state), false);
    assert.equal((await gate.call({ verb: 'DEL', conf: GATED })).code, 0, 'the plugin still removes older sandboxes');
  });
});

it('an empty --kubelet-endpoint: the kubelet is not asked for its configuration', () => {
  assert.equal(kubeletConfigSources(partsOf(['--kubelet-endpoint', '']).parts).configz, undefined);
});

describe('the agent’s report duty', () => {
  const start = useDuties();

  it('reports the state of every source once the networks are read, or cannot be', async () => {
    const api = createFakeApi('n');
    const { log } = recordingLogger();
    let changed = () => {};
    const still = {
      subscribe: (listener: () => void) => {
        changed = listener;
        return () => {};
      },
    };
    const failures = { ...still, current: ['assignments'] };
    const parts = { client: api.client, nodeName: 'n', failures, unsaved: new Problems(), log, metrics: testMetrics() };
    const host = {
      runs: { ...still, run: inputs.run, mode: 'current', kernel: undefined, check() {} },
      assignments: { ...still, view: () => knownView },
      networks: { ...still, isComplete: false, view: () => ({ ...networks, pmdCpus: CpuSet.parse('2') }) },
      refusals: { ...still, current: () => [] },
      ovs: { ...still, pmdCpus: () => CpuSet.parse('3'), problems: () => [] },
      vms: { ...still, pinning: () => [] },
      kubeletConfig: async () => ({ config: undefined, problems: [] }),
    };
    start(createReportDuty(parts as unknown as AgentParts, host as unknown as HostParts));
    const PATH = '/apis/plumbline.dev/v1alpha1/nodetopologies/n';
    const published = () => (api.objects.get(PATH) as unknown as NodeTopology | undefined)?.status;
    await eventually(() => api.objects.has(PATH), 'the object');
    assert.equal(published(), undefined, 'networks that are not read yet are not none');
    failures.current.push('networks');
    changed();
    await eventually(() => published() !== undefined, 'it is published');
    const { reserved, pmdCPUs, assignments, conditions = [] } = published()!;
    assert.deepEqual([reserved, pmdCPUs, assignments?.length], ['0', '2-3', 2]);
    assert.match(JSON.stringify(conditions), /the duty assignments failed .* the duty networks failed/);
  });
});

/** The parts that the duty uses, with every path below the directory. */
function partsIn(directory: string, assignments: ReturnType<typeof settableView>) {
  const config = {
    ovsRundir: join(directory, 'run'),
    ovsEnabler: join(directory, 'enable'),
    ovsIsolated: 'use',
    kubeletDir: directory,
    stateDir: directory,
    cgroupRoot: directory,
    nodeName: 'n',
  };
  const { log } = recordingLogger();
  return {
    parts: { config, events: { record: () => undefined }, metrics: testMetrics(), log },
    host: {
      runs: { run: undefined },
      assignments,
      networks: { view: () => ({ pmdCpus: CpuSet.EMPTY }), subscribe: () => () => {} },
      kubeletConfig: async () => ({ config: {}, problems: [] }),
    },
  };
}

describe('the duty that keeps Open vSwitch off owned CPUs', () => {
  needs('linux');
  const start = useDuties();

  it('gives ordinary threads no CPUs that a PerformanceProfile dedicates to OVS-DPDK', async function () {
    skipWithout('twoCpus', this);
    const directory = temp();
    writeTree(directory, { enable: '1', 'ovs.slice/cpuset.cpus.exclusive': `${machine().first}\n` });
    const { parts, host } = partsIn(directory, settableView({ free: machine() }));
    const { ovs, run } = createOvsDuty(parts as unknown as AgentParts, host as unknown as HostParts);
    start({ run });
    await eventually(() => ovs.status().desired === rest(), `not ${machine().first}`);
    assert.deepEqual(ovs.status().why, [`${machine().first}: poll mode drivers`]);
  });
});

const NAME = ['--node-name', 'worker-1'];

describe('settings of the node agent', () => {
  it('take sysfs and cgroups from below /host where they are mounted there', () => {
    const root = temp();
    const places = () => {
      const { sysfsRoot, cgroupRoot } = parseNodeAgentConfig([...NAME, '--host-root', root]);
      return [sysfsRoot, cgroupRoot].map((path) => relative(root, path));
    };
    assert.deepEqual(places(), ['sys', 'sys/fs/cgroup']);
    writeTree(root, { 'host/cgroup/cgroup.controllers': '' });
    assert.deepEqual(places(), ['sys', 'host/cgroup']);
    writeTree(root, { 'host/sys/devices': '' });
    assert.deepEqual(places(), ['host/sys', 'host/cgroup']);
  });

  // The lowest and the highest value, and values beyond them.
  const limits: [flag: string, accepted: string[], refused: string[]][] = [
    ['--probe-port', ['0', '65535'], ['-1', '65536', '1.5']],
    ['--dpu-node-lease-duration', ['11', '600'], ['11.5', '601']],
    ['--kubelet-endpoint', ['', 'node:1', '[::1]:10250'], ['node', 'node:', 'node:123456', '/node:1', 'a b:1']],
    ['--node-name', ['a', 'a.b-c', `a${'b'.repeat(252)}`], ['', '-a', 'a-', `a${'b'.repeat(253)}`]],
    ['--host-root', ['/', `/${'x'.repeat(63)}`], ['', 'x', `/${'x'.repeat(64)}`]],
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
    ['exemption of all namespaces', [...NAME, '--dpu-exempt', '*'], /--dpu-exempt \*/],
  ];
  for (const [name, argv, message] of wrong) {
    it(`refuse ${name}`, () => assert.throws(() => parseNodeAgentConfig(argv), { name: 'ConfigError', message }));
  }
});
