import { existsSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { countText } from '../../model/amounts.ts';
import { bytesText } from '../../model/quantity.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { usageError } from '../support/exit-status.ts';
import { printLines } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';
import { type ArchiveFile, collect } from './collect.ts';

interface BugReportFlags extends ClusterFlags {
  readonly file?: string;
  readonly dryRun?: true;
}

const FOLDER = 'plumbline-bug-report';

const exists = (path: string) => usageError(`${path} exists and is not overwritten; choose another name with -f`);

/** Prints the list of files, then writes the archive. @throws CliError if the file exists; KubeError */
export async function run(flags: BugReportFlags): Promise<void> {
  const now = Date.now();
  const time = `${new Date(now).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
  const path = flags.file ?? `${FOLDER}-${time}.tar.gz`;
  if (!flags.dryRun && existsSync(path)) throw exists(path);
  const { files, missing } = await usingCluster(flags, (cluster) => collect(cluster, now));
  const rows = files.map(({ name, content }) => [name, bytesText(Buffer.byteLength(content))]);
  printLines([
    ...tableLines(['FILE', 'SIZE'], rows),
    ...missing.map((part) => `not included: ${part}`),
    'names of VMs, pods, networks and namespaces of tenants are replaced; names of nodes, physnets and resources stay',
  ]);
  if (flags.dryRun) return;
  const archive = tarArchive(FOLDER, files, now / 1000);
  try {
    writeFileSync(path, archive, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw exists(path);
    throw usageError(`cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
  printLines([
    `${path}: ${countText(files.length, 'file')}, ${bytesText(archive.length)}; look through it before you send it`,
  ]);
}

const BLOCK_BYTES = 512;

/** A gzipped tar archive (POSIX ustar) with one folder. @param seconds since 1970, the time of all files */
export function tarArchive(folder: string, files: readonly ArchiveFile[], seconds: number): Buffer {
  const blocks = files.flatMap(({ name, content }) => {
    const body = Buffer.from(content);
    const padding = Buffer.alloc((BLOCK_BYTES - (body.length % BLOCK_BYTES)) % BLOCK_BYTES);
    return [headerOf(`${folder}/${name}`, body.length, seconds), body, padding];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]));
}

function headerOf(name: string, size: number, seconds: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`the name ${name} is too long for an archive`);
  const header = Buffer.alloc(BLOCK_BYTES);
  const put = (text: string, at: number) => header.set(Buffer.from(text), at);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  put(name, 0);
  put(octal(0o600, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), 124);
  put(octal(Math.floor(seconds), 11), 136);
  // The checksum counts as blanks.
  put('        ', 148);
  put('0', 156);
  put('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
