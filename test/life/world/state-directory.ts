import { spawnSync } from 'node:child_process';
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const CHUNK = Buffer.alloc(4096, 1);

/** Milliseconds until something is saved, and until it is saved after a fault: the promise is 30 s. */
const SAVED_MILLISECONDS = 5000;
const HEALED_MILLISECONDS = 35_000;

export type StateFault = 'full' | 'unwritable';

const mounted = new Set<string>();
process.once('exit', () => {
  for (const path of mounted) spawnSync('umount', ['-l', path]);
});

/** The agent's state directory on a small file system of its own, which can be full, or refuse every change of a name. */
export class StateDirectory {
  readonly path: string;
  fault: StateFault | undefined;
  /** When the last fault began and ended, in monotonic milliseconds; faults in quick succession are one. */
  #began = Number.POSITIVE_INFINITY;
  #ended = 0;

  constructor(path: string) {
    this.path = path;
    mkdirSync(path, { recursive: true });
    const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', path]);
    if (status === 0) mounted.add(path);
  }

  break(fault: StateFault): void {
    this.repair();
    this.fault = fault;
    const now = performance.now();
    if (now > this.#ended + HEALED_MILLISECONDS || this.#began === Number.POSITIVE_INFINITY) this.#began = now;
    if (fault === 'unwritable' || !mounted.has(this.path)) {
      this.#setImmutable(true);
      return;
    }
    const file = openSync(join(this.path, 'filler'), 'w');
    try {
      for (;;) writeSync(file, CHUNK);
    } catch {
      // It is full now.
    } finally {
      closeSync(file);
    }
  }

  /** Root ignores permissions, and everyone else may not set the flag. */
  #setImmutable(isImmutable: boolean): void {
    if (!isImmutable) spawnSync('chattr', ['-i', this.path]);
    chmodSync(this.path, isImmutable ? 0o555 : 0o755);
    if (isImmutable) spawnSync('chattr', ['+i', this.path]);
  }

  repair(): void {
    if (this.fault !== undefined) this.#setImmutable(false);
    if (this.fault === 'full') rmSync(join(this.path, 'filler'), { force: true });
    if (this.fault !== undefined) this.#ended = performance.now();
    this.fault = undefined;
  }

  /** Whether what the agent wanted to save since that time may not have been saved yet. */
  mayHaveRefused(since: number): boolean {
    const isSavedBefore = since + SAVED_MILLISECONDS < this.#began;
    const isSavedAfter = this.fault === undefined && performance.now() > this.#ended + HEALED_MILLISECONDS;
    return !isSavedBefore && !isSavedAfter;
  }

  end(): void {
    this.repair();
    if (mounted.has(this.path)) spawnSync('umount', ['-l', this.path]);
    mounted.delete(this.path);
  }
}
