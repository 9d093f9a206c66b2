import assert from 'node:assert/strict';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { createOvsDuty } from '../../../node-agent/wiring/thread-affinity.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { machine, rest, settableView } from '../ovs-affinity/stage.ts';
import { eventually, recordingLogger, tempDirectories, testMetrics, writeTree } from '../support.ts';

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
