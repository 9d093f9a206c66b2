import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { interruptSeconds, pressureSeconds, sourceCounts } from '../../hardware/interrupt-counts.ts';
import { CpuSet } from '../../model/cpu-set.ts';

const set = (text: string) => CpuSet.parse(text);

const INTERRUPTS = `           CPU0       CPU1       CPU3
 24:          1          0          7  IO-APIC   5-edge      ACPI:Ged
 38:     100000       6897          2 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
LOC:     558135     521948          1   Local timer interrupts
SPU:          0          0          0   Spurious interrupts
ERR:          5
`;

describe('interrupt counts', () => {
  it('sums up the columns of each group by the CPUs of the header, which has no offline ones', () => {
    const counts = sourceCounts(INTERRUPTS, [set('1-2'), set('3')]);
    assert.deepEqual(counts, [
      { id: '24', text: 'IO-APIC 5-edge ACPI:Ged', counts: [0, 7] },
      { id: '38', text: 'PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0', counts: [6897, 2] },
      { id: 'LOC', text: 'Local timer interrupts', counts: [521_948, 1] },
    ]);
  });

  it('reads the files of this machine as the sum of their numbers', () => {
    for (const file of ['/proc/interrupts', '/proc/softirqs']) {
      const text = readFileSync(file, 'utf8');
      const [head = '', ...lines] = text.trim().split('\n');
      const columns = head.trim().split(/\s+/).length;
      for (const { id, counts } of sourceCounts(text, [CpuSet.range(0, 65_535)])) {
        const line = lines.find((line) => line.trim().startsWith(`${id}:`)) ?? '';
        const numbers = line
          .trim()
          .split(/\s+/)
          .slice(1, columns + 1)
          .map(Number);
        const sum = numbers.filter((number) => !Number.isNaN(number)).reduce((total, number) => total + number, 0);
        assert.deepEqual([id, counts], [id, [sum]]);
      }
    }
  });

  it('says that a kernel does not count the time of hardware interrupts, instead of 0', () => {
    const text = 'cpu  9 0 9 9 0 0 207 0 0 0\ncpu0 9 0 9 9 0 0 200 0 0 0\ncpu1 9 0 9 9 0 0 7 0 0 0\n';
    assert.deepEqual(interruptSeconds(text, [set('1')]), [{ hardware: undefined, soft: 0.07 }]);
    assert.deepEqual(interruptSeconds(text.replaceAll(' 0 207', ' 3 207'), [set('1')]), [{ hardware: 0, soft: 0.07 }]);
    const none = 'cpu  9 0 9 9 0 0 0 0 0 0\ncpu0 9 0 9 9 0 0 0 0 0 0\n';
    assert.deepEqual(interruptSeconds(none, [set('0')]), [{ hardware: undefined, soft: undefined }]);
  });

  it('reads irq.pressure', () => {
    assert.equal(pressureSeconds('full avg10=0.12 avg60=0.09 avg300=0.00 total=1500000\n'), 1.5);
    assert.equal(pressureSeconds(''), undefined);
  });
});
