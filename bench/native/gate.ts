import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { procThreads } from '../../node-agent/processes/proc.ts';
import { renameCheckpoint, startAgentProcess } from '../node-agent/agent-process.ts';
import { compile, startManyThreads } from '../support/c-program.ts';
import { root } from '../support/process.ts';
import { type BenchResult, median, paced, summary } from '../support/timing.ts';

const ROUNDS = 7;
const CALLS = 40;
/** The pod's CPU, which Open vSwitch must leave before the response: the machine's last one. */
const CPU = cpus().length - 1;

/**
 * The CNI plugin with the bundled agent, where each ADD moves 64 threads of Open vSwitch off the pod's CPU. The
 * result is its overhead in multiples of a delegate that does nothing.
 */
export async function gateOverDelegate(): Promise<BenchResult> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const conf = (name: string, value: object) => {
    const file = join(directory, `${name}.json`);
    writeFileSync(file, JSON.stringify({ cniVersion: '1.0.0', name: 'net', ...value }));
    return file;
  };
  const [calls, delegate] = [compile('native/calls.c'), compile('native/delegate.c')];
  const binDir = join(directory, 'bin');
  mkdirSync(binDir);
  execFileSync('make', ['-s', '-C', join(root, 'native/cni'), `OUT=${binDir}`]);
  copyFileSync(delegate.path, join(binDir, 'delegate'));
  const ovs = await startManyThreads();
  const [vswitchd = 0] = ovs.pids;
  const agent = await startAgentProcess({ flags: ['--gate', 'on'], rundir: ovs.rundir });
  Object.assign(process.env, {
    CNI_COMMAND: 'ADD',
    CNI_CONTAINERID: 'sandbox',
    CNI_NETNS: '/var/run/netns/none',
    CNI_IFNAME: 'eth0',
    CNI_PATH: binDir,
    PLUMBLINE_RUN_DIR: join(agent.hostRoot, 'run/plumbline'),
    CNI_ARGS: 'K8S_POD_NAMESPACE=default;K8S_POD_NAME=vm;K8S_POD_UID=uid-1',
  });

  /** Microseconds of each program's calls, in turns. */
  const inTurns = (...programs: string[]): [number[], number[]] => {
    const times = calls.run(paced(CALLS, 15), vswitchd, ...programs);
    return [times.filter((_, i) => i % 2 === 0), times.filter((_, i) => i % 2 === 1)];
  };
  const wrapped = conf('wrapped', { type: 'plumbline-gate', delegate: { type: 'delegate' } });
  const alone = conf('alone', { type: 'delegate' });
  const shim = join(binDir, 'plumbline-gate');
  try {
    assignCpu(agent.kubeletDir);
    const added: number[] = [];
    for (let round = 0; round <= paced(ROUNDS); round++) {
      // The gate is second, so that Open vSwitch is off the pod's CPU after the last call.
      const [bare, gated] = inTurns(alone, delegate.path, wrapped, shim);
      // The first round warms up.
      if (round === 0) continue;
      added.push((median(gated) - median(bare)) / median(bare));
    }
    assertVacated(vswitchd);
    return summary('native.gate-added-over-delegate', added, { most: 5 });
  } finally {
    await agent.stop();
    ovs.stop();
    calls.remove();
    delegate.remove();
    rmSync(directory, { recursive: true, force: true });
  }
}

function assignCpu(kubeletDir: string): void {
  const others = CpuSet.parse('0-255').minus(CpuSet.of([CPU]));
  const entries = { 'uid-1': { compute: String(CPU) } };
  renameCheckpoint(kubeletDir, { policyName: 'static', defaultCpuSet: others.toString(), entries, checksum: 1 });
}

/** Checks that the measured work happened: the last call moved every thread. */
function assertVacated(pid: number): void {
  const affinity = createAffinity();
  const left = procThreads.list(pid).filter((tid) => CpuSet.fromWords(affinity.get(tid)).has(CPU));
  if (left.length > 0) throw new Error(`${left.length} threads are still on CPU ${CPU}`);
}
