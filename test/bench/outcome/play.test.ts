import assert from 'node:assert/strict';
import type { Fleet } from '../../../bench/outcome/fleets.ts';
import { figuresOf } from '../../../bench/outcome/history.ts';
import { play } from '../../../bench/outcome/play.ts';
import type { Stream, StreamVm } from '../../../bench/outcome/stream.ts';
import { buildOnce } from '../../support/bundles.ts';
import { needs } from '../../support/parts.ts';

const FLEET: Fleet = { name: 'one', nodes: 1, threads: 2, cells: 2, policy: 'restricted' };
const vm = (name: string, cores: number, network?: string): StreamVm => ({
  name,
  cores,
  threads: 1,
  isolated: true,
  ioThreads: 0,
  network,
  phase: 'steady',
});
/** An odd and an even launcher; the second one is on the physnet of the second NUMA node. */
const STREAM: Stream = {
  vms: [vm('odd', 4), vm('even', 3, 'physnet1')],
  events: [
    { at: 0, create: vm('odd', 4) },
    { at: 0.5, create: vm('even', 3, 'physnet1') },
  ],
  end: 6,
};

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

  it('shows KubeVirt alone: the odd launcher is rejected, and the network is ignored', async () => {
    const { history, figures } = await run('kubevirt');
    assert.deepEqual(history.vms[0]?.rejected, ['SMTAlignmentError']);
    assert.deepEqual([figures.soon, figures.near, figures.atEnd], [0.5, 0, 1]);
    assert.ok((figures.processorBy['kube-apiserver'] ?? 0) > 0);
  });

  it('shows Plumbline: both launchers run at once, padded and near the network', async () => {
    const { history, figures } = await run('plumbline');
    assert.deepEqual(
      history.vms.map(({ cpus, rejected }) => [cpus, rejected.length]),
      [
        [6, 0],
        [4, 0],
      ],
    );
    assert.deepEqual([figures.soon, figures.near, figures.rejections], [1, 1, 0]);
    assert.deepEqual(Object.keys(figures.processorBy), ['kube-apiserver', 'scheduler', 'extender', 'webhook']);
  });
});
