import assert from 'node:assert/strict';
import type { Fleet } from '../../../bench/outcome/fleets.ts';
import { figuresOf } from '../../../bench/outcome/history.ts';
import { play } from '../../../bench/outcome/play.ts';
import type { Stream, StreamVm } from '../../../bench/outcome/stream.ts';
import { buildOnce } from '../../support/bundles.ts';
import { needs } from '../../support/parts.ts';

const FLEET: Fleet = { name: 'one', nodes: 1, threads: 2, cells: 2, policy: 'restricted' };
const vm = (name: string, cores: number, more: Partial<StreamVm> = {}): StreamVm => ({
  name,
  cores,
  threads: 1,
  isolated: true,
  ioThreads: 0,
  network: undefined,
  vf: false,
  phase: 'steady',
  ...more,
});
/**
 * An odd and an even launcher, the second on the physnet of the second NUMA node, and two with VFs of the same NUMA
 * node, which has CPUs for one of them.
 */
const VMS = [
  vm('odd', 4),
  vm('even', 3, { network: 'physnet1' }),
  vm('vf', 11, { vf: true }),
  vm('no-room', 11, { vf: true, phase: 'fill' }),
];
const STREAM: Stream = { vms: VMS, events: VMS.map((create, i) => ({ at: i / 2, create })), end: 6 };

describe('the outcome bench on a real control plane', function () {
  needs('linux');
  needs('controlPlane');
  needs('kubectl');
  this.timeout(180_000);
  before(() => buildOnce());

  const run = async (contender: 'kubevirt' | 'plumbline') => {
    const faults: unknown[] = [];
    const onFault = (error: unknown) => void faults.push(error);
    const history = await play({ contender, fleet: FLEET, stream: STREAM, onFault, progress: () => undefined });
    assert.deepEqual(faults, []);
    return { history, figures: figuresOf(history) };
  };

  it('shows KubeVirt alone: two launchers are rejected, and the network is ignored', async () => {
    const { history, figures } = await run('kubevirt');
    const rejected = history.vms.map((vm) => vm.rejected);
    assert.deepEqual(rejected, [['SMTAlignmentError'], [], [], ['TopologyAffinityError']]);
    assert.deepEqual([figures.soon, figures.near, figures.atEnd], [2 / 3, 0, 2]);
    assert.ok((figures.processorBy['kube-apiserver'] ?? 0) > 0);
  });

  it('shows Plumbline: the launchers with room run at once, padded and near the network', async () => {
    const { history, figures } = await run('plumbline');
    assert.deepEqual(
      history.vms.map(({ cpus, rejected }) => [cpus, rejected.length]),
      [
        [6, 0],
        [4, 0],
        [12, 0],
        [undefined, 0],
      ],
    );
    assert.deepEqual([figures.soon, figures.near, figures.rejections], [1, 1, 0]);
    assert.deepEqual(Object.keys(figures.processorBy), ['kube-apiserver', 'scheduler', 'extender', 'webhook']);
  });
});
