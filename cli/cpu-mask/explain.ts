import { within } from '../../model/cpu-mask/host-pins.ts';
import { type CpuMask, checkCount, entryOf, formatMask, isForWholeVm, pinsNothing } from '../../model/cpu-mask/mask.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { fitMask } from '../../model/placement/mask-fit.ts';
import { tableLines } from '../support/terminal.ts';

interface ExplainRequest {
  readonly mask: CpuMask;
  readonly vcpus: number | undefined;
  readonly online: CpuSet | undefined;
  readonly reserved: CpuSet;
  readonly fixMismatch: boolean;
}

type MaskExplanation = ReturnType<typeof explainMask>;

export function explainMask(request: ExplainRequest) {
  const { mask, vcpus, online, reserved, fixMismatch } = request;
  const usable = online?.minus(reserved);
  const count = vcpus === undefined ? undefined : checkCount(mask, vcpus);
  const fit = online && usable && fitMask({ mask, fixMismatch }, { online, usable });
  const problems = [count, fit?.fits === false ? fit.text : undefined].filter((text) => text !== undefined);
  const effectiveMask = fit?.fits === true ? fit.mask : mask;
  const isWhole = isForWholeVm(mask);
  const rows = Array.from({ length: isWhole ? 1 : mask.entries.length }, (_, vcpu) => ({
    /** Its number, or `every`. */
    vcpu: isWhole ? ('every' as const) : vcpu,
    cpus: String(entryOf(mask, vcpu) ?? 'all'),
    ...(usable && { effective: within(entryOf(effectiveMask, vcpu) ?? 'all', usable).toString() }),
  }));
  return {
    mask: formatMask(mask),
    pinsNothing: pinsNothing(mask),
    vcpus: rows,
    ...(fit?.fits === true && { fellBack: fit.fellBack }),
    problems,
  };
}

export function maskLines({ mask, pinsNothing: free, vcpus, fellBack, problems }: MaskExplanation): string[] {
  const onHost = vcpus.some(({ effective }) => effective !== undefined);
  const rows = vcpus.map(({ vcpu, cpus, effective }) => [
    vcpu === 'every' ? 'the whole VM' : `vCPU ${vcpu}`,
    cpus === 'all' ? 'any' : cpus,
    ...(onHost ? [effective || 'none'] : []),
  ]);
  return [
    `mask ${mask === '' ? '(empty)' : mask}${free ? ': nothing is pinned' : ''}`,
    ...tableLines(['', 'CPUS', ...(onHost ? ['ON THIS HOST'] : [])], rows),
    ...(fellBack === true ? ['the host lacks CPUs of the mask: "all" applies instead'] : []),
    ...problems.map((problem) => `! ${problem}`),
  ];
}
