import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';
import { figuresOf } from './figures.ts';
import { createInterference } from './measure.ts';
import type { Contender } from './results.ts';

const STARTS = 8;

/** What a loaded Open vSwitch takes from a VM: unmanaged and moved by a loop, over moved by the agent. */
export async function interference(_settings: BenchSettings): Promise<BenchResult[]> {
  const scene = await createInterference();
  try {
    const stolen = async (contender: Contender) => {
      const watched = await scene.watch(contender, paced(STARTS, 4), () => undefined);
      const figures = figuresOf(watched);
      console.error(`# ${contender}: ${JSON.stringify(figures)}`);
      return figures.stolen;
    };
    const ours = await stolen('plumbline');
    return [
      summary('interference.stolen-unmanaged-over-agent', [(await stolen('unmanaged')) / ours], { least: 3 }),
      summary('interference.stolen-loop-over-agent', [(await stolen('loop')) / ours], { least: 1.5 }),
    ];
  } finally {
    await scene.remove();
  }
}
