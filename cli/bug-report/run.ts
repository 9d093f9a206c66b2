import { existsSync, writeFileSync } from 'node:fs';
import { countText } from '../../model/amounts.ts';
import { bytesText } from '../../model/quantity.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { usageError } from '../support/exit-status.ts';
import { printLines } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';
import { tarArchive } from './archive.ts';
import { collect } from './collect.ts';

export interface BugReportFlags extends ClusterFlags {
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
