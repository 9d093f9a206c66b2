import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createAffinity } from '../../native/affinity.ts';
import { procThreads } from '../../node-agent/processes/proc.ts';
import { createOvsScene, type OvsScene, type Reactor, settled } from '../node-agent/ovs-stage.ts';
import { compile } from '../support/c-program.ts';
import type { Watched } from './figures.ts';
import type { Contender } from './results.ts';
import { startSwitched } from './switched.ts';

/** Seconds of a VM's life that are measured, from the moment that the kubelet assigns its CPUs. */
export const SECONDS = 3;

/** Starts victim.c, which waits before it measures. */
export async function startVictim(command: string, ...args: readonly (string | number)[]) {
  const child = spawn(command, args.map(String), { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  await once(child.stdout, 'data');
  return {
    pid: child.pid!,
    begin: () => child.stdin.end('\n'),
    /** What each of its threads saw, when it has ended. */
    async watched(): Promise<Watched[]> {
      await ended;
      const lines = printed.trim().split('\n').slice(1);
      return lines.map((line) => JSON.parse(line) as Watched);
    },
  };
}

/**
 * A real Open vSwitch under load, a kubelet that assigns every CPU but the first to a VM, and a measuring thread on each
 * of these. The generator, the contender and this process stay on the first CPU, as a node's reserved CPUs hold them.
 *
 * @throws Error on a machine with one CPU, without Open vSwitch or gcc, or if the switch forwards nothing
 */
export async function createInterference() {
  const victim = compile('interference/victim.c');
  const switched = await startSwitched();
  let scene: OvsScene;
  try {
    scene = await createOvsScene(switched);
    if (scene.all.size < 2) throw new Error('the measurement needs two CPUs');
  } catch (error) {
    await switched.stop();
    victim.remove();
    throw error;
  }
  const { first, all } = scene;
  const given = all.minus(first);
  const affinity = createAffinity();
  const restrict = (pid: number, cpus: typeof all) => {
    for (const tid of procThreads.list(pid)) affinity.set(tid, cpus.toWords(2));
  };
  for (const pid of [process.pid, switched.generator]) restrict(pid, first);

  const start = async (contender: Contender): Promise<Reactor | undefined> => {
    const reactor =
      contender === 'plumbline' ? await scene.agent() : contender === 'loop' ? await scene.upstream() : undefined;
    if (reactor !== undefined) restrict(reactor.pid, first);
    return reactor;
  };

  const watchStart = async (): Promise<Watched[]> => {
    const started = await startVictim(victim.path, SECONDS, ...given);
    scene.assign();
    started.begin();
    return started.watched();
  };

  return {
    /**
     * Starts VMs one after the other and watches the first seconds of each.
     * @param starts how many; they fall evenly into the loop's second
     * @returns what each measuring thread saw: a thread on each CPU of the VM, for each start
     */
    async watch(contender: Contender, starts: number, progress: (done: number) => void): Promise<Watched[]> {
      const reactor = await start(contender);
      const watched: Watched[] = [];
      try {
        for (let i = 0; i < starts; i++) {
          scene.release();
          for (const pid of switched.pids)
            if (reactor === undefined) restrict(pid, contender === 'apart' ? first : all);
          if (contender !== 'apart') await settled(scene, all);
          await new Promise((resolve) => setTimeout(resolve, ((i + 0.5) / starts) * 1000));
          watched.push(...(await watchStart()));
          progress(i + 1);
        }
      } finally {
        await reactor?.stop();
        scene.release();
        for (const pid of switched.pids) restrict(pid, all);
      }
      return watched;
    },
    async remove() {
      restrict(process.pid, all);
      await scene.remove();
      victim.remove();
    },
  };
}
