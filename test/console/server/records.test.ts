import assert from 'node:assert/strict';
import type { NodeProblem } from '../../../console/data/wire.ts';
import { nodeContent } from '../../../console/server/records.ts';
import { createReports } from '../../../console/server/reports.ts';
import { statusOf } from '../../scheduler-plugin/extender-fixture.ts';

const ALIVE = { dpuHost: true, dpuReady: 'True' };
const RESTART = { at: '2026-11-29T10:00:00Z', text: 'its DPU’s reboot' };

interface Given {
  /** Fields that differ from those of an ordinary node; null: there is no Node. */
  readonly node?: object | null;
  readonly report?: unknown;
  readonly silent?: boolean;
  readonly draCpu?: boolean;
}

describe('the record of a node', () => {
  const rows: [string, Given, readonly NodeProblem[], string][] = [
    ['nothing wrong', {}, [], ''],
    ['a live DPU', { node: ALIVE }, [], 'alive'],
    ['a dead DPU', { node: { dpuHost: true, dpuReady: 'False' } }, ['dpu-dead'], 'dead'],
    ['a DPU that has restarted', { node: { ...ALIVE, dpuRestart: RESTART } }, ['dpu-restarted'], 'alive'],
    ['a DPU without the condition', { node: { dpuHost: true } }, [], 'unknown'],
    ['the condition on a node that is not a DPU host', { node: { dpuReady: 'False' } }, [], ''],
    ['a silent agent', { silent: true }, ['silent'], ''],
    ['a missing report, and VMs', { report: null, node: { acceptsVms: true } }, ['no-report'], ''],
    ['a missing report, and no VMs, as one of the control plane', { report: null }, [], ''],
    ['a contradictory report', { report: statusOf({ reserved: '0,99' }) }, ['quarantined'], ''],
    ['dra.cpu', { draCpu: true }, ['dra-cpu'], ''],
    ['a report without a Node', { node: null }, ['no-node'], ''],
  ];
  for (const [what, { node = {}, report = statusOf(), silent, draCpu }, problems, dpu] of rows) {
    it(`has the problems and the DPU of a node with ${what}`, () => {
      const reports = createReports(() => undefined);
      reports.take('n', report);
      const facts = { dpuHost: false, dpuReady: undefined, dpuSince: undefined, dpuMessage: undefined, ...node };
      const content = nodeContent(
        'n',
        {
          nodes: new Map(node === null ? [] : [['n', { cpus: undefined, labels: undefined, ...facts } as never]]),
          reports: reports.byNode,
          stale: new Set(silent ? ['n'] : []),
          draCpu: new Set(draCpu ? ['n'] : []),
          instances: new Map(),
          machines: new Map(),
          migrationsOf: () => [],
          renewTime: () => (silent ? '2026-05-04T10:00:00.000000Z' : undefined),
        },
        () => undefined,
        [],
        () => false,
      );
      assert.deepEqual([content?.problems, content?.dpu], [problems, dpu]);
      assert.equal(content?.shape === undefined, report === null || problems.includes('quarantined'));
      assert.equal(content?.silentSince, silent ? '2026-05-04T10:00:00.000000Z' : undefined);
    });
  }
});
