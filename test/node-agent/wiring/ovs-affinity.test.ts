import assert from 'node:assert/strict';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { createOvsDuty } from '../../../node-agent/wiring/thread-affinity.ts';
import { needs } from '../../support/parts.ts';
import { settableView } from '../ovs-affinity/stage.ts';
import { eventually, recordingLogger, tempDirectories, testMetrics } from '../support.ts';

const FAILED = 'Failed to get reservedSystemCPUs from kubelet config file';

describe('the duty that keeps Open vSwitch off owned CPUs', () => {
  needs('linux');
  const temp = tempDirectories();

  for (const found of [true, false]) {
    it(`logs ${found ? 'nothing about a readable' : 'why it cannot read the'} configuration of the kubelet`, async () => {
      const directory = temp();
      const logged = recordingLogger();
      let read = 0;
      const config = {
        ovsRundir: join(directory, 'run'),
        ovsEnabler: join(directory, 'enable'),
        ovsIsolated: 'use',
        kubeletDir: directory,
        stateDir: directory,
        cgroupRoot: directory,
        nodeName: 'n',
      };
      const parts = { config, events: { record: () => undefined }, metrics: testMetrics(), log: logged.log };
      const host = {
        facts: { known: () => undefined },
        assignments: settableView(),
        networks: { view: () => ({ pmdCpus: CpuSet.EMPTY }), subscribe: () => () => {} },
        kubeletConfig: async () => {
          read++;
          return { config: found ? {} : undefined, problems: found ? [] : ['config.yaml does not exist'] };
        },
      };
      const ovs = createOvsDuty(parts as unknown as AgentParts, host as unknown as HostParts);
      const stop = new AbortController();
      const done = ovs.run(stop.signal);
      try {
        await eventually(() => read === 1 && ovs.status() !== undefined, 'it runs');
        await new Promise((resolve) => setImmediate(resolve));
        const lines = logged.lines.filter(({ msg }) => msg === FAILED);
        assert.deepEqual(
          lines.map(({ level, problems }) => [level, problems]),
          found ? [] : [[40, ['config.yaml does not exist']]],
        );
      } finally {
        stop.abort();
        await done;
      }
    });
  }
});
