import assert from 'node:assert/strict';
import { runDemo } from '../../../cli/demo/demo.ts';
import type { Printer } from '../../../cli/demo/printer.ts';
import { fitErrorMessage } from '../../../sandbox/scheduler/decision.ts';
import { buildOnce, dist, root } from '../../support/bundles.ts';
import { needs } from '../../support/parts.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { createRealCluster } from './real-cluster-stage.ts';

type StepReport = Parameters<Printer['step']>[0];

function recorder(): Printer & { readonly reports: readonly StepReport[] } {
  const reports: StepReport[] = [];
  const nothing = () => undefined;
  return {
    reports,
    title: nothing,
    progress: nothing,
    fault: nothing,
    lines: nothing,
    end: nothing,
    step: (report) => void reports.push(report),
  };
}

describe('the demo on a real control plane', function () {
  needs('linux');
  onControlPlane(this);
  before(() => buildOnce());

  it('passes every step with real admission, scheduling through the extender, permissions and Leases', async () => {
    const printer = recorder();
    const held = await runDemo({
      dist,
      packageRoot: root,
      printer,
      keep: false,
      command: 'plumbline',
      createCluster: createRealCluster,
    });
    const { reports } = printer;
    assert.deepEqual(
      reports.filter((report) => !report.succeeded),
      [],
    );
    assert.deepEqual(
      [held, reports.map(({ step }) => step)],
      [true, ['rejected', 'installed', 'placed', 'switched', 'pinned', 'dpu-dead', 'dpu-back']],
    );
    const { data } = reports.find(({ step }) => step === 'dpu-dead') ?? {};
    const refusal = String(data?.['reason']);
    const silent = /DPU not ready: dead, last renewal [-\d]+T[:\d]+Z/.exec(refusal)?.[0] ?? 'DPU not ready';
    const elsewhere = { unresolvable: true, reasons: ["node(s) didn't match Pod's node affinity/selector"] };
    const misfits = new Map([
      ['dpu', { unresolvable: true, reasons: [silent] }],
      ...['smt2', 'smt-off', 'numa1'].map((node) => [node, elsewhere] as const),
    ]);
    assert.equal(refusal, fitErrorMessage(misfits.size, misfits), 'the sandbox’s scheduler says the same');
  });
});
