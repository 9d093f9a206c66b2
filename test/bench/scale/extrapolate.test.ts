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
  it('is what was measured at the measured sizes, also where it decreases', () => {
    assert.deepEqual(
      [1000, 3000].map((nodes) => daemonLoad(costs, nodes, 100).share.toFixed(3)),
      ['0.300', '0.200'],
    );
  });

  it('is on the line through both at other sizes, and stays at the higher value where it decreases', () => {
    assert.deepEqual(
      [500, 2000, 5000].map((nodes) => daemonLoad(costs, nodes, 100).memory),
      [50, 200, 500],
    );
    assert.deepEqual(
      [500, 2000, 5000].map((nodes) => daemonLoad(costs, nodes, 100).share.toFixed(3)),
      ['0.300', '0.300', '0.300'],
    );
  });
});
