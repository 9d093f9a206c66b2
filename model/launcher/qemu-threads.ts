/** What a thread of QEMU is for. */
export type QemuThreadRole =
  | { readonly kind: 'vcpu'; readonly index: number }
  /** Does the work of disks; KubeVirt may pin it. */
  | { readonly kind: 'io' }
  /** The main thread, workers, the monitor: everything else. */
  | { readonly kind: 'emulator' };

const EMULATOR: QemuThreadRole = Object.freeze({ kind: 'emulator' });
const IO: QemuThreadRole = Object.freeze({ kind: 'io' });

/** QEMU's own event loop for monitors is an IO thread by its make only. */
const MONITOR = 'IO mon_iothread';

/**
 * Tells what a thread is for by the name that QEMU gives it with debug-threads=on, as libvirt starts it: `CPU 3/KVM`,
 * `CPU 3/TCG` where each vCPU has a thread of its own, `IO iothread1`. The kernel keeps 15 characters of a name.
 * Source: QEMU, accel/kvm/kvm-accel-ops.c, accel/tcg/tcg-accel-ops-mttcg.c, iothread.c.
 */
export function qemuThreadRole(name: string): QemuThreadRole {
  const index = /^CPU ([0-9]+)\/(?:KVM|TCG)$/.exec(name)?.[1];
  if (index !== undefined) return { kind: 'vcpu', index: Number(index) };
  return name.startsWith('IO ') && name !== MONITOR ? IO : EMULATOR;
}
