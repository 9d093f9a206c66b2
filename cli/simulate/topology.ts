/** The topology of hypothetical nodes by default: NUMA nodes x cores of each x threads. */
export const TOPOLOGY = '2x16x2';
