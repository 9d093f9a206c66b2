import assert from 'node:assert/strict';
import { cpusWhileRunning } from '../../../model/admission/facts.ts';
import { cpusOfOrdinary } from '../../../model/admission/ordinary-cpus.ts';
import { type AlignmentPolicy, asksForAlignment, asksForWholeCores } from '../../../model/launcher/annotation.ts';
import { ALIGN_ANNOTATION, DECISION_ANNOTATION } from '../../../model/names.ts';
import { cluster, container, kind, ordinary } from './fixture.ts';

const setup = container('setup', '3');
/** The CPUs of a pod with these containers that can run on nodes with these threads per core. */
function cpusOn(threads: readonly number[], policy: AlignmentPolicy, ...cpus: string[]) {
  const containers = cpus.map((cpu, i) => container(`c${i}`, ...(cpu.split('/') as [string, string?])));
  const settings = { gate: true, policy, oversized: 'refuse' } as const;
  return cpusOfOrdinary(ordinary({ containers }, { cluster: cluster(threads.map((count) => kind(count))), settings }));
}
describe('the CPUs of an ordinary pod', () => {
  it('are those of a pod with the annotation, which has one value', () => {
    const asks = (annotations?: Record<string, string>) =>
      [asksForAlignment, asksForWholeCores].map((asksFor) => asksFor({ annotations }));
    assert.deepEqual(asks(), [false, false]);
    assert.deepEqual(asks({ [ALIGN_ANNOTATION]: 'cores' }), [true, false]);
    assert.deepEqual(asks({ [ALIGN_ANNOTATION]: 'whole-cores' }), [true, true]);
    const [finding] = cpusOfOrdinary(ordinary({ annotations: {} })).findings;
    assert.equal(finding?.code, 'unknown-annotation-value');
  });

  it('are rounded up for each container', () => {
    const cpus = cpusOfOrdinary(ordinary({ containers: [container('a', '2'), container('b', '3')] }));
    const { exclusive, answered, threadsPerCore, stated, plumblineResources } = cpus;
    assert.deepEqual([exclusive, answered, threadsPerCore, stated], [true, true, 2, { a: 2, b: 4 }]);
    assert.deepEqual([cpus.bearer?.index, plumblineResources], [0, ['plumbline.dev/placed']]);
  });

  for (const [what, policy, candidates, threads] of [
    ['no node has reported', 'annotated', [], 2],
    ['auto, no SMT', 'auto', [1], 1],
    ['auto, the largest of several', 'auto', [2, 8, 4], 8],
  ] as const) {
    it(`are rounded to ${threads} threads: ${what}`, () => {
      const { threadsPerCore, amounts } = cpusOn(candidates, policy, '3');
      assert.deepEqual([threadsPerCore, amounts[0]?.cpus], [threads, Math.ceil(3 / threads) * threads]);
    });
  }

  it('are rounded in every container whose request equals its limit, and lost if one is not Guaranteed', () => {
    const { amounts, findings, exclusive, answered, containers, stated } = cpusOn([2], 'annotated', '3', '2/3', '4');
    assert.equal(amounts.map(({ cpus }) => cpus).join(), '4,4');
    assert.deepEqual([exclusive, answered, containers, stated], [false, false, [], {}]);
    assert.equal(findings.map(({ code }) => code).join(), 'not-guaranteed');
  });

  for (const [what, cpus, before, padding] of [
    ['rounded now', '3', undefined, 1],
    ['rounded in an earlier pass', '4', '{"cpus":{"dpdk":4},"padding":1}', 1],
    ['written with an earlier decision about other CPUs', '4', '{"cpus":{"dpdk":6},"padding":1}', 0],
    ['written with more than a core has', '4', '{"cpus":{"dpdk":4},"padding":2}', 0],
  ] as const) {
    it(`have a padding of ${padding} if they were ${what}`, () => {
      const annotations = { [ALIGN_ANNOTATION]: 'whole-cores', [DECISION_ANNOTATION]: before };
      const facts = ordinary({ annotations: annotations as never, containers: [container('dpdk', cpus)] });
      assert.equal(cpusOfOrdinary(facts).padding, padding);
    });
  }

  it('get a note about different nodes if they were rounded', () => {
    const codes = (threads: readonly number[], ...cpus: string[]) =>
      cpusOn(threads, 'annotated', ...cpus).findings.map(({ code }) => code);
    assert.deepEqual(codes([16, 4, 2, 4], '3', '16'), ['mixed-candidates']);
    assert.deepEqual(codes([16, 4, 2, 4], '16', '32'), []);
    assert.deepEqual(codes([4, 4], '3'), []);
  });

  it('give the devices to an init container if only that one has any', () => {
    const cpus = cpusOfOrdinary(ordinary({ initContainers: [setup], containers: [container('a', '500m')] }));
    assert.deepEqual([cpus.bearer?.list, cpus.bearer?.index], ['initContainers', 0]);
    assert.equal(cpusWhileRunning(cpus), 0);
  });
});
