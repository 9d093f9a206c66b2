export type QemuThreadRole =
  | { readonly kind: 'vcpu'; readonly index: number }
  /** Processes disk I/O; KubeVirt may pin it. */
  | { readonly kind: 'io' }
  /** All other threads: the main thread, workers, the monitor. */
  | { readonly kind: 'emulator' };

const EMULATOR: QemuThreadRole = Object.freeze({ kind: 'emulator' });
const IO: QemuThreadRole = Object.freeze({ kind: 'io' });

/** QEMU's own event loop for monitors; it is an IO thread only in its implementation. */
const MONITOR = 'IO mon_iothread';

/**
 * The purpose of a thread, from its name with debug-threads=on, which libvirt sets: `CPU 3/KVM`, `CPU 3/TCG` if each
 * vCPU has its own thread, `IO iothread1`. The kernel keeps 15 characters of a name.
 * Source: QEMU, accel/kvm/kvm-accel-ops.c, accel/tcg/tcg-accel-ops-mttcg.c, iothread.c.
 */
export function qemuThreadRole(name: string): QemuThreadRole {
  const index = /^CPU ([0-9]+)\/(?:KVM|TCG)$/.exec(name)?.[1];
  if (index !== undefined) return { kind: 'vcpu', index: Number(index) };
  return name.startsWith('IO ') && name !== MONITOR ? IO : EMULATOR;
}
