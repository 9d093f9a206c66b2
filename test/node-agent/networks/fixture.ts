import { createHost } from '../../../model/host.ts';

/** Two NUMA nodes of two cores each. */
export const host = createHost({
  cells: [
    { id: 0, cpus: '0-3' },
    { id: 1, cpus: '4-7' },
  ],
  cores: ['0-1', '2-3', '4-5', '6-7'],
});
