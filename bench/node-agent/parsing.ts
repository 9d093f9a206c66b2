import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readHost } from '../../hardware/sysfs.ts';
import { createHost } from '../../model/host.ts';
import { parseCheckpoint } from '../../node-agent/assignments/checkpoint.ts';
import { writeSysfs } from '../../sandbox/kubelet/sysfs.ts';
import { paced } from '../support/pace.ts';
import { type BenchResult, summary } from '../support/timing.ts';

const CPUS = 1000;
const PODS = 250;
const ROUNDS = 7;
/** The files in a CPU's directory about the topology; no program reads the rest of the tree. */
const READ = /\/(online|cpulist|thread_siblings_list|physical_package_id|level|id)$/;

/** A host of 1,000 CPUs and a checkpoint of 250 pods, read and parsed, relative to reading the same files. */
export async function parsing(): Promise<BenchResult> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  try {
    const checkpoint = join(directory, 'cpu_manager_state');
    mkdirSync(join(directory, 'sys'));
    await writeSysfs(join(directory, 'sys'), bigHost());
    writeFileSync(checkpoint, bigCheckpoint());
    const names = await readdir(join(directory, 'sys'), { recursive: true });
    const files = names.map((name) => join(directory, 'sys', name)).filter((name) => READ.test(name));

    const understand = async () => {
      const begun = performance.now();
      createHost(await readHost(join(directory, 'sys')));
      parseCheckpoint(readFileSync(checkpoint, 'utf8'));
      return performance.now() - begun;
    };
    const read = async () => {
      const begun = performance.now();
      await Promise.all(files.map((file) => readFile(file, 'utf8')));
      readFileSync(checkpoint, 'utf8');
      return performance.now() - begun;
    };
    await understand();
    await read();
    const ratios: number[] = [];
    for (let round = 0; round < paced(ROUNDS); round++) ratios.push((await understand()) / (await read()));
    return summary('node-agent.parse-1000-cpus-250-pods-over-reading', ratios, { most: 5 });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function bigHost() {
  const list = (first: number, last: number) => `${first}-${last}`;
  return createHost({
    cells: [0, 1, 2, 3].map((id) => ({
      id,
      cpus: `${list(id * 125, id * 125 + 124)},${list(500 + id * 125, 624 + id * 125)}`,
    })),
    cores: Array.from({ length: CPUS / 2 }, (_, core) => `${core},${core + CPUS / 2}`),
  });
}

function bigCheckpoint(): string {
  const entries = Object.fromEntries(
    Array.from({ length: PODS }, (_, pod) => [
      `00000000-0000-4000-8000-${String(pod).padStart(12, '0')}`,
      { compute: `${pod},${pod + 500}`, sidecar: `${pod + 250},${pod + 750}` },
    ]),
  );
  return JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries, checksum: 1 });
}
