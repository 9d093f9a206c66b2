import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buildOnce } from '../support/bundles.ts';
import { endChild, endsWithUs } from '../support/children.ts';
import { needs } from '../support/parts.ts';
import { until } from '../support/until.ts';
import { Invariants, reportedFree } from './invariants.ts';
import { coreOf } from './world/machine.ts';
import { LifeNode } from './world/node.ts';

/** Errors that no file of a test has by itself: a broken disk, a security module, a network file system, a full table. */
const ERRORS = ['EIO', 'EACCES', 'ESTALE', 'EMFILE'];
/** What an error is called in a message: Node.js has no name for a stale handle of NFS. */
const textOf = (error: string) => (error === 'ESTALE' ? 'Unknown system error -116' : error);
const CALLS = 'open,openat,stat,statx,newfstatat,lstat,read,pread64,getdents64,readlink,rename,renameat';
/** Seconds: the agent reads everything that gives no event within 30 s. */
const FAULT_SECONDS = 40;
const RECOVERY_SECONDS = 75;

const filesOf = ({ directory, kubelet, switch: ovs }: LifeNode) => [
  join(kubelet.directory, 'cpu_manager_state'),
  join(kubelet.directory, 'memory_manager_state'),
  kubelet.cdiDir,
  join(kubelet.directory, 'device-plugins/kubelet_internal_checkpoint'),
  join(directory, 'map/map.yaml'),
  join(directory, 'sys/devices/system/cpu/online'),
  join(ovs.rundir, 'ovs-vswitchd.pid'),
  ovs.enabler,
];

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Every access of the process to these files fails. @returns a function that ends it */
async function failAccess(pid: number, files: readonly string[], error: string): Promise<() => Promise<unknown>> {
  const paths = files.flatMap((file) => ['-P', file]);
  const inject = ['-e', `trace=${CALLS}`, '-e', `inject=${CALLS}:error=${error}`, '-o', '/dev/null'];
  const strace = spawn('strace', ['-f', '-p', String(pid), ...paths, ...inject], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  endsWithUs(strace);
  await once(strace.stderr, 'data');
  return () => endChild(strace, 'SIGINT');
}

async function playError(error: string): Promise<string[]> {
  const node = new LifeNode();
  const invariants = new Invariants(node);
  const wrong = new Set<string>();
  try {
    await node.start();
    node.switch.setOn(true);
    const owner = { namespace: 'demo', pod: 'vm', uid: node.kubelet.newUid(), container: 'compute', cpus: coreOf(1) };
    node.kubelet.add(owner);
    await until('the owner is reported', () => invariants.status?.assignments.length === 1);
    const endError = await failAccess(node.agent?.pid ?? 0, filesOf(node), error);
    node.kubelet.writeState();
    node.writeMap({ physnet2: 0, tunnel: 1 });
    for (const end = performance.now() + FAULT_SECONDS * 1000; performance.now() < end; await pause(200)) {
      if (node.agent?.ended !== undefined) wrong.add(`the agent ended: ${node.agent.ended}`);
      if (invariants.status !== undefined && reportedFree(invariants.status).intersects(owner.cpus))
        wrong.add('an owned CPU is free');
      for (const mask of node.switch.masks().values())
        if (mask.intersects(owner.cpus)) wrong.add(`a thread of Open vSwitch may run on ${mask}`);
    }
    const conditions = JSON.stringify(invariants.status?.conditions);
    for (const file of filesOf(node))
      if (!conditions.includes(file) && node.agent?.linesWith(file, textOf(error)).length === 0)
        wrong.add(`${file} is not named`);
    await endError();
    const recoveredBy = performance.now() + RECOVERY_SECONDS * 1000;
    let remaining = await invariants.notRecovered();
    for (; remaining.length > 0 && performance.now() < recoveredBy; remaining = await invariants.notRecovered())
      await pause(500);
    return [...wrong, ...remaining].map((text) => `${error}: ${text}`);
  } finally {
    await node.end();
  }
}

describe('files of the node that cannot be read', function () {
  needs('linux');
  needs('openVswitch');
  needs('strace');
  this.timeout(300_000);

  it(`are named, no owned CPU becomes free, and the agent recovers: ${ERRORS.join(', ')}`, async () => {
    buildOnce();
    assert.deepEqual((await Promise.all(ERRORS.map(playError))).flat(), []);
  });
});
