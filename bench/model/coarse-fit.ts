import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host } from '../../model/host.ts';
import { CoarseFit } from '../../model/placement/coarse.ts';
import { type BenchResult, ratioOf, secondsPerCall, sink } from '../support/timing.ts';

const HOSTS = 5_000;
const MANY = 50_000;

/** Two sockets of 32 cores with two threads each: 128 CPUs. */
export function largeHost(): Host {
  const half = (id: number) => `${id * 32}-${id * 32 + 31},${64 + id * 32}-${64 + id * 32 + 31}`;
  return createHost({
    cells: [
      { id: 0, cpus: half(0) },
      { id: 1, cpus: half(1) },
    ],
    cores: Array.from({ length: 64 }, (_, core) => `${core},${core + 64}`),
  });
}

function filled(hosts: number): CoarseFit {
  const host = largeHost();
  const coarse = new CoarseFit();
  let seed = 1;
  for (let index = 0; index < hosts; index++) {
    const words = Uint32Array.from({ length: 4 }, () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed;
    });
    coarse.add(host, CpuSet.fromWords(words));
    coarse.setNetwork(index, 'physnet', index % 3);
  }
  return coarse;
}

/** Seconds of a fit of one pod over many hosts. */
function fitter(coarse: CoarseFit): () => number {
  const out = new Int16Array(coarse.size);
  const need = { cpus: 8, wholeCores: true, networks: ['physnet'] };
  return () =>
    secondsPerCall(() => {
      sink.value ^= coarse.fit(need, out);
    });
}

/** The fit of one pod over 5,000 hosts, relative to a plain XOR over the same numbers. */
export function coarseFitAgainstXor(): BenchResult {
  const coarse = filled(HOSTS);
  const { rooms } = coarse;
  const xor = () =>
    secondsPerCall(() => {
      let value = 0;
      for (let i = 0; i < rooms.length; i++) value ^= rooms[i]!;
      sink.value ^= value;
    });
  return ratioOf('model.coarse-fit-over-xor', { most: 10 }, fitter(coarse), xor);
}

/** Ten times the hosts in at most fifteen times the time: linear, with a margin for cache misses. */
export function coarseFitGrowth(): BenchResult {
  return ratioOf('model.coarse-fit-50000-over-5000', { most: 15 }, fitter(filled(MANY)), fitter(filled(HOSTS)));
}
