import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { FLEETS } from './fleets.ts';
import { type Figures, figuresOf } from './history.ts';
import { play } from './play.ts';
import { createStream } from './stream.ts';

const FLEET = '8-smt-2-restricted';
const SEED = 1;

/**
 * One fleet of docs/reference/outcome.md as a bench with bounds: Plumbline relative to KubeVirt alone. Fails if a
 * kubelet rejects a launcher with Plumbline, if a VM waits although there is room, or if one runs away from its
 * network.
 */
export async function outcome(_settings: BenchSettings): Promise<BenchResult[]> {
  const fleet = FLEETS.find(({ name }) => name === FLEET)!;
  const stream = createStream({ seed: SEED, fleet });
  const figures = async (contender: 'kubevirt' | 'plumbline'): Promise<Figures> => {
    const onFault = (error: unknown) => console.error(`# ${contender}: ${String(error)}`);
    const found = figuresOf(await play({ contender, fleet, stream, onFault, progress: () => undefined }));
    console.error(`# ${contender}: ${JSON.stringify(found)}`);
    return found;
  };
  const theirs = await figures('kubevirt');
  const ours = await figures('plumbline');
  return [
    summary('outcome.rejections-per-100', [ours.rejections], { most: 0 }),
    summary('outcome.running-in-10-s', [ours.soon], { least: 0.99 }),
    summary('outcome.near-network', [ours.near ?? 0], { least: 1 }),
    summary('outcome.running-at-end-over-kubevirt', [ours.atEnd / theirs.atEnd], { least: 1 }),
  ];
}
