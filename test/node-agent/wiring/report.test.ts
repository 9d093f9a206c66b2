import assert from 'node:assert/strict';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { createReportDuty } from '../../../node-agent/wiring/report.ts';
import { eventually, recordingLogger, testMetrics } from '../support.ts';

describe('the agent’s report duty', () => {
  for (const has of [true, false]) {
    it(`follows every source${has ? '' : ' that exists'} and stops at its end`, async () => {
      const following = new Map<string, number>();
      const source = (name: string) => ({
        subscribe: () => {
          following.set(name, (following.get(name) ?? 0) + 1);
          return () => void following.set(name, (following.get(name) ?? 0) - 1);
        },
      });
      const { log } = recordingLogger();
      const client = { get: () => Promise.reject(new Error('away')) };
      const parts = { client, config: { nodeName: 'n' }, failures: source('failures'), log, metrics: testMetrics() };
      const host = {
        assignments: source('assignments'),
        networks: source('networks'),
        refusals: source('refusals'),
        near: source('near'),
        ovs: has ? source('ovs') : undefined,
        vms: has ? source('vms') : undefined,
      };
      const report = createReportDuty(parts as unknown as AgentParts, host as unknown as HostParts);
      const stopping = new AbortController();
      const running = report.run(stopping.signal);
      await eventually(() => following.size > 0, 'it runs');
      const expected = [
        'assignments',
        'failures',
        'near',
        'networks',
        ...(has ? ['ovs'] : []),
        'refusals',
        ...(has ? ['vms'] : []),
      ];
      assert.deepEqual(
        [...following].sort(),
        expected.map((name) => [name, 1]),
      );
      stopping.abort();
      await running;
      assert.deepEqual(
        [...following].sort(),
        expected.map((name) => [name, 0]),
      );
    });
  }
});
