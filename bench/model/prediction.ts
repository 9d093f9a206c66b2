import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host } from '../../model/host.ts';
import { createKubelet } from '../../model/kubelet/kubelet.ts';
import type { PodRequest } from '../../model/kubelet/pod-request.ts';
import { type BenchResult, ratioOf, secondsPerCall, sink } from '../support/timing.ts';
import { admitPlain } from './set-based.ts';

const RESERVED = '0-1,64-65';
const NIC = 'physnet.plumbline.dev/east';

/** Two sockets of 32 cores with two threads each: 128 CPUs. */
function largeHost(): Host {
  const half = (id: number) => `${id * 32}-${id * 32 + 31},${64 + id * 32}-${64 + id * 32 + 31}`;
  return createHost({
    cells: [
      { id: 0, cpus: half(0) },
      { id: 1, cpus: half(1) },
    ],
    cores: Array.from({ length: 64 }, (_, core) => `${core},${core + 64}`),
  });
}

/** A complete prediction with its cpuset on a half-full host of 128 CPUs, relative to the Set-based reference. */
export function predictionAgainstSets(): BenchResult {
  const host = largeHost();
  const kubelet = createKubelet({
    version: 'v1.36.0',
    host,
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'restricted' },
    reserved: CpuSet.parse(RESERVED),
  });
  if ('unpredictable' in kubelet) throw new Error(kubelet.unpredictable);
  const pools = new Map([[NIC, { devices: [{ id: '0', healthy: true, nodes: [1] }], endless: true }]]);
  const busy = new Map([['other', new Map([['c', CpuSet.parse('2-9,34-49,66-73,98-113')]])]]);
  const state = kubelet.initialState(pools, busy);
  const request: PodRequest = {
    uid: 'a',
    guaranteed: true,
    containers: [{ name: 'compute', kind: 'app', cpus: 10, devices: new Map([[NIC, 1]]), memory: new Map() }],
  };
  const plain = {
    cpus: new Map(host.cpus.map((cpu) => [cpu.id, cpu])),
    reserved: new Set(CpuSet.parse(RESERVED)),
    fullPcpusOnly: true,
    preferUncore: false,
    policy: 'restricted',
    wideDeviceHints: false,
  } as const;
  const pool = new Set(state.defaultSet);
  const containers = [{ cpus: 10, init: false, devices: [[1]] }];

  const predicted = kubelet.admit(state, request);
  const compared = admitPlain(plain, pool, containers);
  const same =
    predicted.admitted &&
    typeof compared !== 'string' &&
    `${predicted.containers[0]?.cpus}` === `${CpuSet.of(compared.cpus[0] ?? [])}`;
  if (!same) throw new Error('prediction and comparison disagree');

  return ratioOf(
    'model.prediction-over-sets',
    { least: 20 },
    () =>
      secondsPerCall(() => {
        sink.value ^= kubelet.admit(state, request).admitted ? 1 : 0;
      }),
    () =>
      secondsPerCall(() => {
        sink.value ^= typeof admitPlain(plain, pool, containers) === 'string' ? 0 : 1;
      }),
  );
}
