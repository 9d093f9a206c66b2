import type { Scene } from '../scenarios/scenario.ts';

const UNIT = 'plumbline-lab-vcpus';
const FILE = '/run/plumbline-lab-vcpus';
/** Ticks of 10 ms that a vCPU's thread may use before its guest runs, for QEMU's own preparations. */
const BEFORE_THE_GUEST = 5;

/** The allowed CPUs of a vCPU's thread, with the ticks of 10 ms that it had used. */
export interface VcpuSample {
  readonly vcpu: number;
  readonly ticks: number;
  readonly allowed: string;
}

/**
 * Samples the vCPUs of a QEMU as often as the lab's guest can, from before its start.
 * @param guest as in QEMU's -name
 */
export async function sampleVcpus(
  { lab, undo }: Scene,
  guest: string,
): Promise<{ samples(): Promise<readonly VcpuSample[]> }> {
  // Fields 14 and 15 of stat, whose name in brackets contains a blank.
  const look = `for t in /proc/$p/task/*; do read -r c <$t/comm || continue; case "$c" in CPU*)
  a=$(grep Cpus_allowed_list $t/status | cut -f2); s=$(sed 's/.*) //' $t/stat | cut -d' ' -f12,13); echo "$c $a $s";; esac; done`;
  const script = `while :; do p=$(pgrep -f -- 'guest=${guest},' | head -n 1); if [ -n "$p" ]; then ${look}; else sleep 0.2; fi; done`;
  undo(() => lab.run(`systemctl stop ${UNIT} 2>/dev/null; rm -f ${FILE} ${FILE}.sh`));
  await lab.run(`cat >${FILE}.sh`, script);
  await lab.run(`systemd-run --quiet --collect --unit=${UNIT} -p StandardOutput=truncate:${FILE} sh ${FILE}.sh`);
  return {
    async samples() {
      const text = await lab.run(`cat ${FILE}`);
      return [...text.matchAll(/^CPU (\d+)\/\S+ (\S+) (\d+) (\d+)$/gm)].map(([, vcpu, allowed = '', user, system]) => ({
        vcpu: Number(vcpu),
        ticks: Number(user) + Number(system),
        allowed,
      }));
    },
  };
}

/** The samples of times when the guest ran. */
export const whileTheGuestRan = (samples: readonly VcpuSample[]): readonly VcpuSample[] =>
  samples.filter(({ ticks }) => ticks > BEFORE_THE_GUEST);
