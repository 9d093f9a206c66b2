import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename } from 'node:path';
import { unlessMissing } from '../files/bounded-file.ts';

/** Maximum bytes of a mask: 8,192 CPUs as a list of every second one. */
const MAX_BYTES = 64 * 1024;
const OWNER_WRITES = 0o200;

/** A file's text, and a number that differs for another file that later has the same path. */
export interface KernelText {
  readonly text: string;
  readonly instance: number;
}

/**
 * Small files of procfs and sysfs that are read again and again. A descriptor that stays open costs a tenth of opening the file,
 * and fails when the kernel has removed the file, so that another interrupt with the same number is noticed.
 *
 * Owner: one scan's knobs. Age: read at each call. End: `close`.
 */
export class KernelFiles {
  readonly #open = new Map<string, { readonly fd: number; readonly instance: number }>();
  readonly #buffer = Buffer.allocUnsafe(MAX_BYTES);
  #instances = 0;

  /** Undefined if there is no such file, or it has no value. @throws a system error, such as EMFILE */
  read(path: string): KernelText | undefined {
    const opened = this.#open.get(path);
    const again = opened && this.#readFrom(opened.fd);
    if (opened !== undefined && again !== undefined) return { text: again, instance: opened.instance };
    this.close(path);
    const fd = unlessGone(() => openSync(path, constants.O_RDONLY));
    if (fd === undefined) return undefined;
    const text = this.#readFrom(fd);
    if (text === undefined) {
      closeSync(fd);
      return undefined;
    }
    const instance = ++this.#instances;
    this.#open.set(path, { fd, instance });
    return { text, instance };
  }

  /** Without keeping it open. */
  readOnce(path: string): string | undefined {
    const text = this.read(path)?.text;
    this.close(path);
    return text?.trim();
  }

  /** @param inode of `inode`: not written if another file has the path now @throws a system error: EPERM, EIO, EINVAL, ENOSPC, … */
  write(path: string, text: string, inode?: number): void {
    const fd = openSync(path, constants.O_WRONLY);
    try {
      if (inode !== undefined && fstatSync(fd).ino !== inode)
        throw Object.assign(new Error(`${path} is another file now`), { code: 'ENOENT' });
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
  }

  /** Whether its owner may write it: the kernel marks masks that it manages itself. */
  isWritable(path: string): boolean {
    return ((unlessMissing(() => statSync(path, { throwIfNoEntry: false }))?.mode ?? 0) & OWNER_WRITES) !== 0;
  }

  /** The names in a directory; empty if there is none. */
  list(path: string): string[] {
    return unlessGone(() => readdirSync(path)) ?? [];
  }

  /** The number of the file that has the path now, in its file system; closes an open one that was renamed. */
  inode(path: string): number | undefined {
    const opened = this.#open.get(path);
    const inode = unlessGone(() => statSync(path).ino);
    if (opened !== undefined && fstatSync(opened.fd).ino !== inode) this.close(path);
    return inode;
  }

  /** The last part of what a link names; undefined if there is no such link. */
  linkName(path: string): string | undefined {
    return unlessGone(() => basename(readlinkSync(path)));
  }

  close(path: string): void {
    const opened = this.#open.get(path);
    if (opened === undefined) return;
    closeSync(opened.fd);
    this.#open.delete(path);
  }

  closeAll(): void {
    for (const path of [...this.#open.keys()]) this.close(path);
  }

  #readFrom(fd: number): string | undefined {
    return unlessGone(() => this.#buffer.toString('latin1', 0, readSync(fd, this.#buffer, 0, MAX_BYTES, 0)));
  }
}

/** Error codes of a file that the kernel has removed, also under an open descriptor, and of one without a value. */
const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ESRCH', 'EIO', 'EINVAL', 'EACCES']);

/** @throws any other system error: with EMFILE nothing is known */
function unlessGone<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (GONE.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
