import assert from 'node:assert/strict';
import { useStages } from './stage.ts';

describe('other programs that decide where work of the kernel runs', () => {
  const { stageAt } = useStages();

  const managed = [
    {
      label: 'tuned isolates CPUs',
      file: '/etc/tuned/active_profile',
      text: 'realtime-virtual-host',
      left: ['irq', 'default'],
    },
    {
      label: 'a PerformanceProfile',
      file: '/etc/tuned/active_profile',
      text: 'openshift-node-performance-x',
      left: ['default'],
    },
    { label: 'CRI-O bans CPUs', file: '/etc/sysconfig/orig_irq_banned_cpus', text: '0', left: ['default'] },
    { label: 'nri-plugins', file: '/proc/77/comm', text: 'nri-resource-po', left: ['irq'] },
  ];
  for (const { label, file, text, left } of managed) {
    it(`${label}: what it manages stays, and it is named`, async () => {
      const { kernel, start, own, stage } = stageAt();
      kernel.put('/proc/irq/default_smp_affinity', 'ff');
      kernel.irq(40, { cpus: '0-7', action: 'a' });
      kernel.put(file, text);
      await start();
      await own('2-3');
      const isLeft = {
        irq: kernel.mask(40) === '0-7',
        default: kernel.text('/proc/irq/default_smp_affinity') === 'ff',
      };
      assert.deepEqual(isLeft, { irq: left.includes('irq'), default: left.includes('default') });
      assert.equal(stage.moves.status().managers.length, 1);
    });
  }
});
