import { MaskFormError, toLxc, toXen } from '../../model/cpu-mask/convert.ts';
import { planPins } from '../../model/cpu-mask/host-pins.ts';
import { checkCount, type MaskEntry, maskForHost, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

/**
 * Where Plumbline refuses what Ganeti accepts, and why. Each of these is checked to be refused, and nothing else is.
 */
const STRICTER: ReadonlyMap<string, string> = new Map([
  ['1, 2', 'digits only: no blanks'],
  ['1 - 3', 'digits only: no blanks'],
  [' 1:2', 'digits only: no blanks'],
  ['1 : 2', 'digits only: no blanks'],
  ['+1', 'digits only: no sign'],
  ['1_0', 'digits only: no underscore'],
  ['99999', 'CPU ids end at 65535'],
  [':', 'an empty entry does not say what to pin'],
  ['1::2', 'an empty entry does not say what to pin'],
  ['::', 'an empty entry does not say what to pin'],
  ['1:', 'an empty entry does not say what to pin'],
  ['1,1', 'an entry is a set: this is one CPU, and LXC wants two'],
]);

interface Vectors {
  readonly parse: readonly { readonly mask: string | null; readonly parsed?: readonly number[] }[];
  readonly multi: readonly { readonly mask: string | null; readonly parsed?: readonly (readonly number[])[] }[];
  readonly validate: readonly {
    readonly mask: string;
    readonly vcpus: number;
    readonly hostCpus: number;
    readonly ok: boolean;
    readonly error?: string;
    readonly maskUnchanged?: boolean;
  }[];
  readonly xen: readonly { readonly mask: string; readonly xen?: string | null }[];
  readonly kvm: readonly {
    readonly mask: string;
    readonly vcpuThreads: readonly number[];
    readonly calls?: readonly { readonly target: string; readonly cpus: readonly number[] | string }[];
  }[];
  readonly lxc: readonly { readonly mask: string; readonly vcpus: number; readonly ok: boolean }[];
}

/** ganeti-cpumask-cases.json: what a mask says, to whom, and in whose words. */
export const run: Adapter = (content) => {
  const { parse, multi, validate, xen, kvm, lxc } = content as Vectors;
  const casesOf = <T extends { readonly mask: string | null }>(
    kind: string,
    cases: readonly T[],
    check: (one: T) => Verdict,
  ) => cases.map((one) => ({ name: `${kind} ${JSON.stringify(one.mask)}`, check: () => check(one) }));
  return [
    ...casesOf('parse', parse, ({ mask, parsed }) => checkParse(mask, parsed && (mask === null ? [] : [parsed]))),
    ...casesOf('multi', multi, ({ mask, parsed }) => checkParse(mask, parsed)),
    ...casesOf('validate', validate, checkValidate),
    ...casesOf('xen', xen, checkXen),
    ...casesOf('kvm', kvm, checkKvm),
    ...casesOf('lxc', lxc, checkLxc),
  ];
};

function checkParse(mask: string | null, parsed: readonly (readonly number[])[] | undefined): Verdict {
  return refusable(mask ?? '', parsed === undefined, () => {
    const { entries } = parseMask(mask ?? '');
    const wanted = (parsed ?? []).map((cpus) => (cpus[0] === -1 ? 'all' : CpuSet.of(cpus)));
    return differs(entries, wanted);
  });
}

function checkValidate(one: Vectors['validate'][number]): Verdict {
  return refusable(one.mask, one.error === 'crash', () => {
    const mask = parseMask(one.mask);
    const online = CpuSet.range(0, one.hostCpus - 1);
    const faultOfHost =
      one.maskUnchanged === true || !('fault' in maskForHost(mask, online, false)) ? undefined : 'host-size';
    const fault = checkCount(mask, one.vcpus) === undefined ? faultOfHost : 'count';
    return differs(fault, one.ok ? undefined : one.error);
  });
}

/** The same CPUs in each place; the vectors' `all` within a list is 0-63. */
function checkXen({ mask, xen }: Vectors['xen'][number]): Verdict {
  return refusable(mask, xen === undefined, () => {
    const cpusOf = (line: string | null | undefined) =>
      line?.match(/[0-9][0-9,-]*/g)?.map((list) => CpuSet.parse(list));
    return differs(cpusOf(toXen(parseMask(mask), CpuSet.range(0, 63))), cpusOf(xen));
  });
}

/** Ganeti's call for the process as a whole misses the vCPU threads: here it stands for each of them. */
function checkKvm({ mask, vcpuThreads, calls }: Vectors['kvm'][number]): Verdict {
  return refusable(mask, false, () => {
    const online = CpuSet.range(0, 15);
    const plan = planPins(parseMask(mask), vcpuThreads, vcpuThreads.length, online);
    const cpusOf = (cpus: readonly number[] | string): MaskEntry =>
      typeof cpus === 'string' ? online : CpuSet.of(cpus);
    const wanted = calls?.flatMap(({ target, cpus }) =>
      (target === 'process' ? vcpuThreads : [Number(target.slice('vcpu'.length))]).map((vcpu) => ({
        vcpu,
        cpus: cpusOf(cpus),
      })),
    );
    return differs(plan.kind === 'pin' ? plan.pins : undefined, wanted);
  });
}

function checkLxc({ mask, vcpus, ok }: Vectors['lxc'][number]): Verdict {
  return refusable(mask, !ok, () => {
    const list = toLxc(parseMask(mask), vcpus);
    return differs(list && CpuSet.parse(list).size, vcpus);
  });
}

/** A mask must be refused if the vector says so or the list above does; and must not be if neither does. */
function refusable(mask: string, wrong: boolean, check: () => Verdict): Verdict {
  const expected = wrong || STRICTER.has(mask);
  try {
    return expected
      ? `expected to be refused (${STRICTER.get(mask) ?? 'as in Ganeti'}), got ${check() ?? "the vector's own answer"}`
      : check();
  } catch (error) {
    if (expected && (error instanceof ParseError || error instanceof MaskFormError)) return undefined;
    throw error;
  }
}
