import { startManyThreads } from '../support/c-program.ts';
import { type BenchResult, paced, quantile, summary } from '../support/timing.ts';
import { createOvsScene, type OvsScene, type Reactor, settled } from './ovs-stage.ts';

const ROUNDS = 3;
const SAMPLES = 60;
/** Not counted: on a node both have been running for some time. */
const WARM_UP = 10;
/** Each takes a second and a half. The samples are spread evenly over the loop's second. */
const LOOP_SAMPLES = 16;

/** Milliseconds from the rename to the last thread moved. */
async function once(scene: OvsScene, reactor: Reactor): Promise<number> {
  const moved = reactor.moved();
  const begun = scene.assign();
  const millis = Number((await moved) - begun) / 1e6;
  if (!scene.isOn(scene.first)) throw new Error('the threads were not moved');
  return millis;
}

async function react(scene: OvsScene, start: () => Promise<Reactor>): Promise<number[]> {
  const reactor = await start();
  const millis: number[] = [];
  scene.release();
  await settled(scene, scene.all);
  for (let i = 0; i < WARM_UP + paced(SAMPLES, 40); i++) {
    millis.push(await once(scene, reactor));
    scene.release();
    await settled(scene, scene.all);
  }
  await reactor.stop();
  return millis.slice(WARM_UP);
}

/** The loop's delay depends on the time of a change within its second, so each sample uses a different one. */
async function loopDelays(scene: OvsScene): Promise<number[]> {
  const reactor = await scene.upstream();
  const samples = paced(LOOP_SAMPLES, 8);
  const millis: number[] = [];
  for (let i = 0; i < samples; i++) {
    scene.release();
    await settled(scene, scene.all);
    await new Promise((resolve) => setTimeout(resolve, ((i + 0.5) / samples) * 1000));
    millis.push(await once(scene, reactor));
  }
  await reactor.stop();
  return millis;
}

/**
 * Time from the rename of cpu_manager_state until the last of 2 x 64 threads has moved: the agent's duties relative to
 * a loop that checks every second, and to a C program that does nothing else.
 */
export async function ovsReaction(): Promise<BenchResult[]> {
  const scene = await createOvsScene(await startManyThreads());
  const agent: number[] = [];
  const c: number[] = [];
  const medians: number[] = [];
  try {
    for (let round = 0; round < paced(ROUNDS, 1); round++) {
      const ours = await react(scene, () => scene.agent());
      const theirs = await react(scene, () => scene.inC());
      agent.push(...ours);
      c.push(...theirs);
      medians.push(quantile(ours, 0.5) / quantile(theirs, 0.5));
    }
    const loop = await loopDelays(scene);
    const say = (name: string, millis: readonly number[]) =>
      `${name} p50 ${quantile(millis, 0.5).toFixed(2)} p99 ${quantile(millis, 0.99).toFixed(2)}`;
    console.error(`# milliseconds: ${[say('agent', agent), say('C', c), say('loop', loop)].join(', ')}`);
    const p99 = quantile(agent, 0.99);
    return [
      summary('node-agent.ovs-reaction-p99-loop-over-agent', [quantile(loop, 0.99) / p99], { least: 100 }),
      summary('node-agent.ovs-reaction-p99-over-c', [p99 / quantile(c, 0.99)], { most: 4 }),
      summary('node-agent.ovs-reaction-p50-over-c', medians, { most: 4 }),
    ];
  } finally {
    await scene.remove();
  }
}
