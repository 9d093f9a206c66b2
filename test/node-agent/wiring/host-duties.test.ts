import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { NodeTopology } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createReportDuty } from '../../../node-agent/wiring/duties.ts';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { createOvsDuty } from '../../../node-agent/wiring/thread-affinity.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { createFakeApi } from '../api-stand-in.ts';
import { machine, rest, settableView } from '../ovs-affinity/stage.ts';
import { inputs, knownView, networks } from '../report/inputs-fixture.ts';
import { eventually, recordingLogger, tempDirectories, testMetrics, writeTree } from '../support.ts';

describe('the agent’s report duty', () => {
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
    const failures = { ...still, current: new Set(['assignments']) };
    const parts = { client: api.client, nodeName: 'n', failures, log, metrics: testMetrics() };
    const { host: description, memory, isolated, offline, contradictions } = inputs;
    const host = {
      facts: { read: async () => ({ description, memory, isolated, offline, contradictions }) },
      assignments: { ...still, view: () => knownView },
      networks: { ...still, isComplete: false, view: () => ({ ...networks, pmdCpus: CpuSet.parse('2') }) },
      refusals: { ...still, current: () => [] },
      ovs: { ...still, pmdCpus: () => CpuSet.parse('3'), problems: () => [] },
      vms: { ...still, pinning: () => [] },
      kubeletConfig: async () => ({ config: undefined, problems: [] }),
    };
    const report = createReportDuty(parts as unknown as AgentParts, host as unknown as HostParts);
    const stopping = new AbortController();
    const running = report.run(stopping.signal);
    const PATH = '/apis/plumbline.dev/v1alpha1/nodetopologies/n';
    const published = () => (api.objects.get(PATH) as unknown as NodeTopology | undefined)?.status;
    try {
      await eventually(() => api.objects.has(PATH), 'the object');
      assert.equal(published(), undefined, 'networks that are not read yet are not none');
      failures.current.add('networks');
      changed();
      await eventually(() => published() !== undefined, 'it is published');
      const { reserved, pmdCPUs, assignments, conditions = [] } = published()!;
      assert.deepEqual([reserved, pmdCPUs, assignments?.length], ['0', '2-3', 2]);
      assert.match(JSON.stringify(conditions), /the duty assignments failed .* the duty networks failed/);
    } finally {
      stopping.abort();
      await running;
    }
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
      facts: { current: () => undefined },
      assignments,
      networks: { view: () => ({ pmdCpus: CpuSet.EMPTY }), subscribe: () => () => {} },
      kubeletConfig: async () => ({ config: {}, problems: [] }),
    },
  };
}

describe('the duty that keeps Open vSwitch off owned CPUs', () => {
  needs('linux');
  const temp = tempDirectories();

  it('gives ordinary threads no CPUs that a PerformanceProfile dedicates to OVS-DPDK', async function () {
    skipWithout('twoCpus', this);
    const directory = temp();
    writeTree(directory, { enable: '1', 'ovs.slice/cpuset.cpus.exclusive': `${machine().first}\n` });
    const { parts, host } = partsIn(directory, settableView({ free: machine() }));
    const { ovs, run } = createOvsDuty(parts as unknown as AgentParts, host as unknown as HostParts);
    const stop = new AbortController();
    const done = run(stop.signal);
    try {
      await eventually(() => ovs.status().desired === rest(), `not ${machine().first}`);
      assert.deepEqual(ovs.status().why, [`${machine().first}: poll mode drivers`]);
    } finally {
      stop.abort();
      await done;
    }
  });
});
