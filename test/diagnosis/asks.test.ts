import assert from 'node:assert/strict';
import { asksOf } from '../../diagnosis/asks.ts';
import { explainedPod, explainedVmi } from '../../diagnosis/objects.ts';
import { ANNOTATED, launcher } from './fixture.ts';

describe('what the CPUs of a launcher consist of', () => {
  const cpu = { sockets: 1, cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
  const vmi = (domain: object) => explainedVmi.parse({ metadata: { name: 'fw' }, spec: { domain } });
  const rows: readonly [string, string, number, object | undefined, string][] = [
    [
      'vCPUs, the emulator and the padding',
      '10',
      1,
      { cpu },
      '(8 vCPUs + 1 for the emulator + 1 to complete whole cores)',
    ],
    ['vCPUs and the emulator', '9', 0, { cpu }, '(8 vCPUs + 1 for the emulator)'],
    ['only vCPUs, which needs no words', '8', 0, { cpu }, ''],
    ['the padding, if the instance is not known', '10', 1, undefined, '(including 1 to complete whole cores)'],
    ['unknown parts, if it has fewer CPUs than the instance now asks for', '4', 0, { cpu }, ''],
    ['the padding of a VM whose CPUs are not dedicated', '10', 1, { cpu: {} }, '(including 1 to complete whole cores)'],
  ];
  for (const [title, cpus, padding, domain, expected] of rows) {
    it(title, () => {
      const decision = JSON.stringify({ cpus: { compute: Number(cpus) }, ...(padding > 0 && { padding }) });
      const annotations = { ...ANNOTATED, 'plumbline.dev/decision': decision };
      const pod = explainedPod.parse(launcher({ cpus, metadata: { name: 'x', annotations } }));
      const { text } = asksOf(pod, domain && vmi(domain));
      const [first = ''] = text;
      assert.equal(first, `${cpus} dedicated CPUs for compute${expected === '' ? '' : ` ${expected}`}`);
    });
  }
});
