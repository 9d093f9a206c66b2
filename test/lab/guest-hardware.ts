import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMemory } from '../../hardware/memory.ts';
import { readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { describeForKubelet } from '../../model/host-sysfs.ts';
import type { LabMachine } from './lab.ts';
import { execute } from './machine/commands.ts';
import type { RecordedNode } from './recording.ts';

/** The files that the agent reads of a node, below /sys/devices/system. */
const FILES = [
  'cpu/online',
  'cpu/present',
  'cpu/cpu[0-9]*/topology',
  'cpu/cpu[0-9]*/cache',
  ...['cpulist', 'distance', 'hugepages', 'meminfo'].map((name) => `node/node[0-9]*/${name}`),
  'node/online',
];

/** The guest's hardware, as this source tree's agent reads it from a copy of the guest's sysfs. */
export async function readGuestHardware(lab: LabMachine): Promise<Pick<RecordedNode, 'host' | 'memory' | 'offline'>> {
  const root = await mkdtemp(join(tmpdir(), 'plumbline-lab-sysfs-'));
  try {
    // Files of sysfs report 4096 bytes: an archive needs a copy with the real length.
    const copied = `cp -r --parents ${FILES.map((file) => `devices/system/${file}`).join(' ')} "$copy" 2>/dev/null || true`;
    const line = `copy=$(mktemp -d) && cd /sys && (${copied}) && tar -C "$copy" -cz . | base64 && rm -r "$copy"`;
    await execute('tar', ['-C', root, '-xz'], { input: Buffer.from(await lab.run(line), 'base64') });
    const host = describeForKubelet(await readSysfs(root));
    const memory = await readMemory(
      root,
      host.cells.map(({ id }) => id),
    );
    const offline = (await readOffline(root)).toString();
    return { host, memory, ...(offline !== '' && { offline }) };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
