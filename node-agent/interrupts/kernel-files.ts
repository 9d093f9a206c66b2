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
import { readHead, unlessMissing } from '../files/bounded-file.ts';

/** Error codes of a file that the kernel has removed, also under an open descriptor, and of one without a value. */
const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ESRCH', 'EIO', 'EINVAL', 'EACCES']);

/** With any other error, such as EMFILE, nothing is known. */
const unlessGone = <T>(work: () => T): T | undefined => unlessMissing(work, GONE);

/** Maximum bytes of a mask: 8,192 CPUs as a list of every second one. */
const MAX_BYTES = 64 * 1024;
/** The kernel returns most other files as one record, which is shorter. */
const MAX_RECORD_BYTES = 4096;

/**
 * Small files of procfs and sysfs that are read again and again. A descriptor that stays open costs a tenth of opening the file,
 * and fails when the kernel has removed the file, so that another interrupt with the same number is noticed.
 *
 * Owner: the knobs. Age: read at each call. End: `close`.
 */
export class KernelFiles {
  readonly #open = new Map<string, { readonly fd: number; readonly instance: number }>();
  readonly #buffer = Buffer.allocUnsafe(MAX_BYTES);
  #instances = 0;

  /**
   * Undefined if there is no such file, or it has no value. `instance` differs for another file that later has the path.
   * @throws a system error, such as EMFILE
   */
  read(path: string): { readonly text: string; readonly instance: number } | undefined {
    const opened = this.#open.get(path);
    const text = opened && this.#readFrom(opened.fd);
    if (opened !== undefined && text !== undefined) return { text, instance: opened.instance };
    this.close(path);
    const fd = unlessGone(() => openSync(path, constants.O_RDONLY));
    if (fd === undefined) return undefined;
    this.#open.set(path, { fd, instance: ++this.#instances });
    const first = this.#readFrom(fd);
    if (first === undefined) this.close(path);
    return first === undefined ? undefined : { text: first, instance: this.#instances };
  }

  /** Without keeping it open, and without the line end. */
  readOnce(path: string, maxBytes = MAX_RECORD_BYTES): string | undefined {
    return unlessGone(() => readHead(path, maxBytes).trim());
  }

  /** @param inode of `stat`: not written if another file has the path now @throws a system error: EPERM, EIO, EINVAL, ENOSPC, … */
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

  /** Undefined if there is no such file. */
  stat(path: string): { readonly ino: number; readonly mode: number } | undefined {
    return unlessGone(() => statSync(path));
  }

  /** The names in a directory; empty if there is none. */
  list(path: string): string[] {
    return unlessGone(() => readdirSync(path)) ?? [];
  }

  /** The last part of what a link names; undefined if there is no such link. */
  linkName(path: string): string | undefined {
    return unlessGone(() => basename(readlinkSync(path)));
  }

  close(path: string): void {
    const opened = this.#open.get(path);
    if (opened !== undefined) closeSync(opened.fd);
    this.#open.delete(path);
  }

  closeAll(): void {
    for (const path of this.#open.keys()) this.close(path);
  }

  #readFrom(fd: number): string | undefined {
    return unlessGone(() => this.#buffer.toString('latin1', 0, readSync(fd, this.#buffer, 0, MAX_BYTES, 0)));
  }
}
