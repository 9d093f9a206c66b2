import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';
import { copyCommand } from '../command-files.ts';
import type { Lab } from '../lab.ts';

const HOME = '/opt/plumbline-lab/qemu';
const QEMU = '/usr/bin/qemu-system-x86_64';
/** Debian's QEMU has its emulation in a module. */
const MODULE = '/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so';
/** The guest has its own, which is newer and needs its own loader. */
const C_LIBRARY = /\/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util))\.so/;
const FIRMWARE = [
  '/usr/share/seabios/bios-256k.bin',
  '/usr/share/qemu/kvmvapic.bin',
  '/usr/share/qemu/linuxboot_dma.bin',
];

/** Thread ids of a QEMU in the guest, by role. */
export interface GuestThreads {
  readonly pid: number;
  /** By index. */
  readonly vcpus: readonly number[];
  readonly io: readonly number[];
  readonly emulator: readonly number[];
}

/** This machine's QEMU and the command line tool, in the guest. */
export interface GuestQemu {
  /** Starts one with -S and waits until all vCPUs have threads. */
  start(name: string, vcpus: number, ioThreads?: number): Promise<GuestThreads>;
  /** Runs `plumbline qemu` on its monitor. @returns its output, and `status N` */
  plumbline(name: string, mask: string): Promise<string>;
  /** Cpus_allowed_list of each thread. */
  allowed(tids: readonly number[]): Promise<readonly string[]>;
  stop(name: string): Promise<void>;
}

/** After the agent, whose native module the command line tool also uses. */
export async function installQemu(lab: Lab): Promise<GuestQemu> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-lab-'));
  try {
    const tar = join(directory, 'qemu.tar');
    const needed = [...execFileSync('ldd', [QEMU], { encoding: 'utf8' }).matchAll(/(\/\S+)/g)].map(([path]) => path);
    const libraries = needed.filter((path) => !C_LIBRARY.test(path));
    const files = [QEMU, ...libraries, ...[MODULE, ...FIRMWARE].filter((path) => existsSync(path))];
    const flat = ['--transform', 's,.*/,,', '-h', '-P'];
    execFileSync('tar', ['-cf', tar, ...flat, ...files]);
    await lab.run(`rm -rf ${HOME} && mkdir -p ${HOME} && ln -s ../agent/node_modules ${HOME}/node_modules`);
    await lab.copy(tar, `${HOME}/qemu.tar`);
    await lab.run(`tar -C ${HOME} -xf ${HOME}/qemu.tar && rm ${HOME}/qemu.tar`);
    await copyCommand(lab, HOME);
  } finally {
    rmSync(directory, { recursive: true });
  }
  const unit = (name: string) => `plumbline-lab-${name}`;
  const threads = async (name: string): Promise<GuestThreads> => {
    const pid = Number(await lab.run(`systemctl show -P MainPID ${unit(name)}`));
    const listed = await lab.run(`cd /proc/${pid}/task && for t in *; do echo "$t $(cat $t/comm)"; done`);
    const all = listed
      .trim()
      .split('\n')
      .map((line) => {
        const [tid = '', ...comm] = line.split(' ');
        return { tid: Number(tid), role: qemuThreadRole(comm.join(' ')) };
      });
    const of = (kind: string) => all.filter(({ role }) => role.kind === kind).map(({ tid }) => tid);
    const vcpus: number[] = [];
    for (const { tid, role } of all) if (role.kind === 'vcpu') vcpus[role.index] = tid;
    return { pid, vcpus, io: of('io'), emulator: of('emulator') };
  };
  return {
    async start(name, vcpus, ioThreads = 0) {
      const socket = `${HOME}/${name}.qmp`;
      const machine = ['-S', '-machine q35', '-accel tcg,thread=multi', `-smp ${vcpus}`, '-m 32', `-L ${HOME}`];
      const quiet = ['-nodefaults', '-display none', '-name guest=vm,debug-threads=on'];
      const io = Array.from({ length: ioThreads }, (_, i) => `-object iothread,id=iothread${i + 1}`);
      const command = [...machine, ...quiet, ...io, `-qmp unix:${socket},server=on,wait=off`].join(' ');
      const env = `--setenv=LD_LIBRARY_PATH=${HOME} --setenv=QEMU_MODULE_DIR=${HOME}`;
      await lab.run(`systemd-run --quiet --collect --unit=${unit(name)} ${env} ${HOME}/qemu-system-x86_64 ${command}`);
      const ready = `grep -l TCG /proc/$(systemctl show -P MainPID ${unit(name)})/task/*/comm | wc -l`;
      await lab.run(`for i in $(seq 100); do [ "$(${ready})" = ${vcpus} ] && exit 0; sleep 0.2; done; exit 1`);
      return threads(name);
    },
    plumbline: (name, mask) =>
      lab.run(`node ${HOME}/plumbline.mjs qemu --qmp ${HOME}/${name}.qmp --mask ${mask} 2>&1; echo "status $?"`),
    async allowed(tids) {
      const files = tids.map((tid) => `/proc/${tid}/status`).join(' ');
      return (await lab.run(`grep -h Cpus_allowed_list ${files} | cut -f2`)).trim().split('\n');
    },
    stop: async (name) => void (await lab.run(`systemctl stop ${unit(name)} 2>/dev/null || true`)),
  };
}
