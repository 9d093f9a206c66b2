import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import {
  fitMask,
  type MaskHost,
  maskedVmOf,
  type SurveyedNode,
  surveyMask,
} from '../../../model/placement/mask-fit.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
const host = (online: string, usable = online, pinsVMs?: boolean): MaskHost => ({
  online: CpuSet.parse(online),
  usable: CpuSet.parse(usable),
  pinsVMs,
});
const vm = (annotations: Record<string, string>, spec: object = {}) =>
  maskedVmOf({ metadata: { annotations }, spec: { domain: { cpu: { cores: 2 } }, ...spec }, vcpusUnknown: false });
const surveyed = (name: string, of: MaskHost | undefined, labels: Record<string, string> = {}): SurveyedNode => ({
  name,
  host: of,
  label: (key) => labels[key],
});
const request = (mask: string, fixMismatch = false) => ({ mask: parseMask(mask), fixMismatch });
describe('a CPU mask on a host', () => {
  const cases: [string, ReturnType<typeof fitMask>, object][] = [
    [
      'fits if each vCPU has a usable CPU',
      fitMask(request('2:3-9'), host('0-9', '2-4')),
      { fits: true, fellBack: false },
    ],
    ['falls back to all CPUs if allowed', fitMask(request('2:10', true), host('0-9')), { fits: true, fellBack: true }],
    [
      'does not fit if a vCPU has no usable CPU',
      fitMask(request('2:3-4'), host('0-9', '2,5-7')),
      {
        fits: false,
        reason: 'no-usable-cpus',
        short: 'CPU mask names no CPU that may be used on the node',
        text: 'the CPU mask 2:3-4 leaves vCPU 1 without a CPU: every CPU of 3-4 is reserved or owned by another pod (free: 2,5-7)',
      },
    ],
    [
      'does not fit where the agent sets no masks',
      fitMask(request('2'), host('0-9', '0-9', false)),
      { fits: false, reason: 'not-applied', short: 'node does not apply CPU masks' },
    ],
  ];
  for (const [what, fit, expected] of cases) it(what, () => assert.deepEqual({ ...fit, ...expected }, fit));
});
describe('a CPU mask on all nodes', () => {
  const nodes = [
    surveyed('small', host('0-1'), { zone: 'a' }),
    surveyed('large', host('0-9'), { zone: 'b' }),
    surveyed('silent', undefined, { zone: 'c' }),
  ];
  const outcomes = (masked: ReturnType<typeof maskedVmOf>) =>
    masked &&
    surveyMask(masked, nodes).map(
      ({ node: { name }, verdict }) => `${name}: ${verdict.fits ? 'fits' : `${verdict.reason}, ${verdict.text}`}`,
    );

  it('is none of a VM without a mask, or whose mask pins nothing', () => {
    assert.deepEqual([vm({}), vm({ [MASK]: 'all:all' })], [undefined, undefined]);
  });

  it('has a verdict on each node that the VM may run on', () => {
    const silent = 'silent: no-report, the node does not report its topology';
    const lacks = 'small: host-cpus, ';
    const mask = { [MASK]: '2:3' };
    const on = (zone: string) => ({ nodeSelector: { zone } });
    const all = outcomes(vm(mask)) ?? [];
    assert.ok(all[0]?.startsWith(lacks), all[0]);
    assert.deepEqual(all.slice(1), ['large: fits', silent]);
    assert.deepEqual(outcomes(vm({ ...mask, [FIX]: 'true' }, on('a'))), ['small: fits']);
    assert.deepEqual(outcomes(vm(mask, on('c'))), [silent]);
  });
});
