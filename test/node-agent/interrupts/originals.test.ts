import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDirectories } from '../support.ts';
import { useStages } from './stage.ts';

describe('the originals of what an agent has moved', () => {
  const { movedAt, stageAt } = useStages();
  const temp = tempDirectories();

  for (const [how, changes] of [
    ['switched off', { isMoving: false }],
    ['killed, and switched on again without owners', {}],
  ] as const) {
    it(`an earlier agent’s originals return: ${how}`, async () => {
      const { kernel, stage, start, own, end, path } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      kernel.irq(41, { cpus: '0-7', action: 'b' });
      await start();
      await own('2-3');
      await end();
      assert.deepEqual([kernel.mask(40), kernel.mask(41)], ['0-1,4-7', '0-1,4-7'], 'the end of the agent leaves them');
      if (changes.isMoving === undefined) await own('');
      await stage.start(changes);
      assert.deepEqual([kernel.mask(40), kernel.mask(41)], ['2', '0-7']);
      assert.equal(existsSync(path), false);
    });
  }

  it('an agent that is updated moves nothing back before it knows the owners', async () => {
    const { kernel, stage, own, end, later, release } = await movedAt({ cpus: '0-7', owned: '2-3' });
    await end();
    stage.unknown();
    const { length } = kernel.writes;
    await stage.start();
    await later(10);
    await own('2-3');
    assert.deepEqual([kernel.mask(40), kernel.writes.length - length], ['0-1,4-7', 0]);
    await release();
    assert.equal(kernel.mask(40), '0-7');
  });

  it('the originals are on the disk before the first write', async () => {
    const { kernel, start, own, path } = stageAt();
    kernel.irq(40, { cpus: '2', action: 'a' });
    const saved: string[] = [];
    const write = kernel.write.bind(kernel);
    kernel.write = (file, text) => {
      saved.push(readFileSync(path, 'utf8'));
      write(file, text);
    };
    await start();
    await own('2-3');
    assert.match(saved[0] ?? '', /"original":"2","written":\["0-1,4-7"\]/);
  });

  it('an agent that was killed between saving and writing leaves nothing behind', async () => {
    const { kernel, stage, own, end } = await movedAt({ cpus: '0-7', owned: '2-3' });
    kernel.errors.set('/proc/irq/40/smp_affinity_list', 'EBUSY');
    await own('2-5');
    kernel.errors.clear();
    await end();
    await stage.start({ isMoving: false });
    assert.equal(kernel.mask(40), '0-7');
  });

  it('a value that is not the agent’s any more stays', async () => {
    const { kernel, stage, end } = await movedAt({ cpus: '2', owned: '2-3' });
    await end();
    kernel.change('/proc/irq/40/smp_affinity_list', '5');
    await stage.start({ isMoving: false });
    assert.equal(kernel.mask(40), '5');
  });

  it('another device that has the number now does not get the original', async () => {
    const { kernel, stage, end } = await movedAt({ cpus: '2', owned: '2-3' });
    await end();
    kernel.irq(40, { cpus: '0-1,4-7', action: 'c', pci: '0000:c2:00.0' });
    await stage.start({ isMoving: false });
    assert.equal(kernel.mask(40), '0-1,4-7');
  });

  it('after a reboot the originals of the last boot are dropped', async () => {
    const { kernel, stage, end } = await movedAt({ cpus: '2', owned: '2-3' });
    await end();
    await stage.start({ isMoving: false, bootId: 'boot-2' });
    assert.equal(kernel.mask(40), '0-1,4-7');
  });

  it('an agent that cannot read them changes nothing, and keeps them', async () => {
    const { kernel, stage, end, path, release } = await movedAt({ cpus: '2', owned: '2-3' });
    await end();
    const saved = readFileSync(path);
    rmSync(path);
    mkdirSync(path);
    await stage.start();
    await release();
    assert.equal(kernel.mask(40), '0-1,4-7');
    await end();
    rmdirSync(path);
    writeFileSync(path, saved);
    await stage.start({ isMoving: false });
    assert.equal(kernel.mask(40), '2');
  });

  it('nothing is moved that could not be undone', async () => {
    const file = join(temp(), 'file');
    writeFileSync(file, '');
    const { stage } = stageAt(join(file, 'interrupts.json'));
    stage.kernel.irq(40, { cpus: '2', action: 'a' });
    await stage.start();
    await stage.own('2-3');
    assert.equal(stage.kernel.mask(40), '2');
    assert.match(stage.moves.status().problems.join(), /^nothing is moved until the originals can be saved/);
  });
});

describe('what is remembered of an interface', () => {
  const { stageAt } = useStages();
  const NIC = '/sys/class/net';
  const rps = (nic: string) => `${NIC}/${nic}/queues/rx-0/rps_cpus`;
  const SEARCH_SECONDS = 10;

  it('follows it when it is renamed, and is not written to the one that has its name now', async () => {
    const { kernel, start, own, later, release } = stageAt();
    kernel.put(rps('eth0'), 'c');
    kernel.put(rps('eth1'), '30');
    await start();
    await own('2-3');
    assert.deepEqual([kernel.text(rps('eth0')), kernel.text(rps('eth1'))], ['f3', '30']);
    kernel.rename(`${NIC}/eth0`, `${NIC}/lan0`);
    kernel.rename(`${NIC}/eth1`, `${NIC}/eth0`);
    await release();
    await later(SEARCH_SECONDS);
    assert.deepEqual([kernel.text(rps('lan0')), kernel.text(rps('eth0'))], ['c', '30']);
  });

  it('is kept while it is in a pod, also for the next agent', async () => {
    const { kernel, start, own, later, stage, release } = stageAt();
    kernel.put(rps('eth0'), 'c');
    await start();
    await own('2-3');
    kernel.rename(`${NIC}/eth0`, '/pod/eth0');
    await later(SEARCH_SECONDS + 2);
    await own('2-3,6');
    await stage.end();
    await start();
    await release();
    kernel.rename('/pod/eth0', `${NIC}/eth7`);
    await later(SEARCH_SECONDS + 2);
    assert.equal(kernel.text(rps('eth7')), 'c');
  });

  it('ends when a driver makes it again: what it has then is its original', async () => {
    const { kernel, start, own, later, release } = stageAt();
    kernel.put(rps('eth0'), 'c');
    await start();
    await own('2-3');
    kernel.put(rps('eth0'), 'f3');
    await later(SEARCH_SECONDS + 2);
    await release();
    assert.equal(kernel.text(rps('eth0')), 'f3');
  });

  const irqs: [string, Partial<Parameters<ReturnType<typeof stageAt>['kernel']['irq']>[1]>, string, string][] = [
    ['has a new name', { action: 'lan0-rx-0' }, 'ice', '0-7'],
    ['has another driver', {}, 'vfio-pci', '0-1,4-7'],
    ['is another device with the number', { pci: '0000:c2:00.0' }, 'ice', '0-1,4-7'],
  ];
  for (const [label, changes, driver, expected] of irqs) {
    it(`an interrupt that an earlier agent moved, whose device ${label}, gets ${expected}`, async () => {
      const { kernel, start, own, stage, release } = stageAt();
      const irq = { cpus: '0-7', action: 'eth0-rx-0', hwirq: 7, pci: '0000:c1:00.0' };
      kernel.put('/sys/bus/pci/devices/0000:c1:00.0/driver', 'ice');
      kernel.irq(40, irq);
      await start();
      await own('2-3');
      assert.equal(kernel.mask(40), '0-1,4-7');
      await stage.end();
      kernel.put('/sys/bus/pci/devices/0000:c1:00.0/driver', driver);
      kernel.irq(40, { ...irq, cpus: '0-1,4-7', ...changes });
      await start();
      await own('2-3');
      await release();
      assert.equal(kernel.mask(40), expected);
    });
  }
});
