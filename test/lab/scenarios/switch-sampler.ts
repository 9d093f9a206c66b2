import { join } from 'node:path';
import * as z from 'zod';
import { CpuSet } from '../../../model/cpu-set.ts';
import { KUBELET_ROOT } from '../guest.ts';
import type { Scene } from './scenario.ts';
import { RUNDIR } from './switch-masks.ts';

const CONTAINERS = '/var/lib/containerd/io.containerd.grpc.v1.cri/containers';
const PROGRAM = '/opt/plumbline-lab/sampler/ovs-sampler.cjs';
const SAMPLES = '/run/plumbline-lab-samples';
const UNIT = 'plumbline-lab-sampler';

const line = z.object({
  at: z.number(),
  since: z.number(),
  samples: z.number(),
  pool: z.string(),
  allowed: z.string(),
  made: z.number(),
});

/** The sampler's data at each change and at its end. Times are milliseconds since its start. */
export interface Sample {
  readonly at: number;
  /** The time of the previous sample. */
  readonly since: number;
  /** Number of samples so far. */
  readonly samples: number;
  /** The kubelet's shared pool, from its checkpoint. */
  readonly pool: CpuSet;
  /** The CPUs of all of Open vSwitch's threads together. */
  readonly allowed: CpuSet;
  /** Containers of the runtime. */
  readonly made: number;
}

/** Installs the sampler in the guest until the end of the scenario. */
export async function installSampler({ lab, undo }: Scene): Promise<void> {
  await lab.copy(join(import.meta.dirname, 'ovs-sampler.cjs'), PROGRAM);
  undo(() => lab.run(`systemctl stop ${UNIT} 2>/dev/null; rm -rf ${PROGRAM} ${SAMPLES}`));
}

/**
 * Starts sampling.
 * @param between milliseconds between two samples; 0: as fast as the guest can
 * @returns a function that stops it and returns the changes in order
 */
export async function startSampling({ lab }: Scene, between = 0): Promise<() => Promise<readonly Sample[]>> {
  const command = `node ${PROGRAM} ${between} ${KUBELET_ROOT} ${RUNDIR} ${CONTAINERS}`;
  await lab.run(`systemd-run --quiet --collect --unit=${UNIT} -p StandardOutput=truncate:${SAMPLES} ${command}`);
  // A unit counts as started before the first sample.
  await lab.run(`for i in $(seq 100); do [ -s ${SAMPLES} ] && exit 0; sleep 0.1; done; exit 1`);
  return async () => {
    const text = await lab.run(`systemctl stop ${UNIT}; cat ${SAMPLES}`);
    return text
      .trim()
      .split('\n')
      .map((one) => line.parse(JSON.parse(one)))
      .map((one) => ({ ...one, pool: CpuSet.parse(one.pool), allowed: CpuSet.parse(one.allowed) }));
  };
}
