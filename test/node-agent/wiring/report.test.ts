import assert from 'node:assert/strict';
import type { NodeTopology } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createReportDuty } from '../../../node-agent/wiring/duties.ts';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { createFakeApi } from '../api-stand-in.ts';
import { inputs, knownView, networks } from '../report/inputs-fixture.ts';
import { eventually, recordingLogger, testMetrics } from '../support.ts';

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
