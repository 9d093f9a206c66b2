import assert from 'node:assert/strict';
import type { DaemonCost } from '../../../bench/scale/control-plane.ts';
import { daemonLoad } from '../../../bench/scale/extrapolate.ts';

const costOf = (vmSeconds: number, memory: number): DaemonCost => ({
  memory,
  startBytes: 0,
  heartbeatShare: 0,
  heartbeatBytes: 0,
  vmSeconds,
  vmSecondsByDefault: vmSeconds,
  vmBytes: 0,
  vmRequests: 0,
});
const costs = {
  few: { nodes: 1000, cost: costOf(0.003, 100) },
  many: { nodes: 3000, cost: costOf(0.002, 300) },
};

describe('the load of a daemon', () => {
  const loads = (...nodes: number[]) => nodes.map((count) => daemonLoad(costs, count, 100));

  it('is what was measured at the measured sizes, and on the line through both at others', () => {
    assert.deepEqual(
      loads(500, 2000, 5000).map(({ memory }) => memory),
      [50, 200, 500],
    );
  });

  it('stays at the higher value where it decreases', () => {
    assert.deepEqual(
      loads(500, 1000, 2000, 3000, 5000).map(({ share }) => share.toFixed(3)),
      ['0.300', '0.300', '0.300', '0.200', '0.300'],
    );
  });
});
