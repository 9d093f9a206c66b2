import { rename, writeFile } from 'node:fs/promises';
import type { MemoryBlock, MemoryState } from '../../model/kubelet/memory-state.ts';

export const MEMORY_STATE_FILE = 'memory_manager_state';

/** The NUMA nodes of a mask of bits. */
export const nodesOfMask = (mask: number, numaIds: readonly number[]) =>
  numaIds.filter((_, bit) => (mask & (1 << bit)) !== 0);

/**
 * Writes the memory manager's state as the kubelet does; without one, that of policy None. No kubelet reads it here.
 * Source: pkg/kubelet/cm/memorymanager/state/checkpoint.go.
 */
export async function writeMemoryState(
  path: string,
  memory: MemoryState | undefined,
  numaIds: readonly number[],
): Promise<void> {
  const blockOf = ({ mask, type, size }: MemoryBlock) => ({ numaAffinity: nodesOfMask(mask, numaIds), type, size });
  const cells = (memory?.cells ?? []).map(({ blocks, group, tables }, bit) => {
    const memoryMap = [...tables].map(([type, { allocatable, free }]) => {
      const amounts = { total: allocatable, systemReserved: 0, allocatable, reserved: allocatable - free, free };
      return [type, amounts];
    });
    const node = {
      numberOfAssignments: blocks,
      memoryMap: Object.fromEntries(memoryMap),
      cells: nodesOfMask(group, numaIds),
    };
    return [numaIds[bit], node];
  });
  const entries = [...(memory?.blocks ?? [])].map(([uid, containers]) => [
    uid,
    Object.fromEntries([...containers].map(([name, blocks]) => [name, blocks.map(blockOf)])),
  ]);
  const state = {
    policyName: memory === undefined ? 'None' : 'Static',
    machineState: Object.fromEntries(cells),
    ...(entries.length > 0 && { entries: Object.fromEntries(entries) }),
    checksum: 0,
  };
  await writeFile(`${path}.tmp`, JSON.stringify(state));
  await rename(`${path}.tmp`, path);
}
