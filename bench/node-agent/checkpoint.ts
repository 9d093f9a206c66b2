import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Writes cpu_manager_state as the kubelet does: 60 pods of 4 CPUs. `change` number i replaces one of them by another,
 * so that each change frees some CPUs and assigns others.
 */
export function replaceCheckpoint(kubeletDir: string, change: number): void {
  const entries: Record<string, { compute: string }> = {};
  const taken = new Set<number>();
  for (let slot = 0; slot < 60; slot++) {
    const age = Math.floor((change + 59 - slot) / 60);
    const first = 2 + ((slot * 2 + (age % 2) * 120) % 120);
    const cpus = [first, first + 1, first + 128, first + 129];
    for (const cpu of cpus) taken.add(cpu);
    entries[`00000000-0000-4000-8000-${String(slot * 1_000_000 + age).padStart(12, '0')}`] = { compute: cpus.join() };
  }
  const free = Array.from({ length: 256 }, (_, cpu) => cpu).filter((cpu) => !taken.has(cpu));
  const text = JSON.stringify({ policyName: 'static', defaultCpuSet: free.join(), entries, checksum: change });
  const file = join(kubeletDir, 'cpu_manager_state');
  writeFileSync(`${file}.tmp`, text);
  renameSync(`${file}.tmp`, file);
}
